"""A model with a sliding window: how many tokens of each prompt are found again, as recorded from the reference."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bankml.engine.completion import Job
from bankml.engine.engine import Engine
from bankml.engine.prompt_cache import prompt_cache
from bankml.model.model import Model
from tests.engine.engine_toys import ByteVocabulary, GreedySampler, ToyPieces
from tests.tiny_architectures import CONTEXT, tiny_architecture

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "engine" / "window_sessions.json").read_text())
ANSWER = 6  # tokens

# (tokens that the prompt shares with the one before, tokens in all, what differs)
SESSION = (
    (0, 300, 1),
    (300, 340, 1),
    (340, 380, 2),
    (200, 260, 3),
    (20, 700, 4),
    (700, 760, 4),
    (700, 900, 5),
    (895, 900, 6),
    (50, 120, 7),
    (0, 900, 5),
    (120, 150, 8),
    (150, 150, 8),
    (150, 980, 9),
)


def session_prompts():
    """Prompts of tokens below 128, each beginning as the one before."""
    prompts = [[]]
    for shared, n, salt in SESSION:
        prompts.append([*prompts[-1][:shared], *(33 + (7 * i * i + 3 * i + 11 * salt) % 61 for i in range(shared, n))])
    return prompts[1:]


class CharacterSampler(GreedySampler):
    """Of tokens whose text is one character."""

    def sample(self, logits):
        return int(np.argmax(logits[:128]))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_session(tmp_path, name):
    """Made by scripts/record_architectures.py with the reference's llama-server."""
    verified = tiny_architecture(tmp_path, name)
    model = Model.open(verified, CONTEXT, 2, {"BANKML_LLAMA_THREADS": "2"})
    cache = prompt_cache(1 << 30, CONTEXT)
    engine = Engine(model, ByteVocabulary(), prompt_cache=cache)
    got = []
    for prompt in session_prompts():
        steps = list(engine.complete(Job(prompt, ANSWER), CharacterSampler(), ToyPieces()))
        got.append([steps[-1].progress.cached_tokens, [step.token for step in steps]])
    assert got == RECORDED[name]


def test_the_session_goes_back_and_forth():
    """So that recorded counts are of more than one kind: all found, a checkpoint's tokens, nothing."""
    for counts in RECORDED.values():
        cached = [count for count, _ in counts]
        assert 0 in cached[1:] and len(set(cached)) > 4
    assert all(a[:20] == b[:20] for a, b in pairwise(session_prompts()[2:5]))
