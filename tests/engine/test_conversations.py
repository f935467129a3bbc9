"""Conversations that take turns in one slot, on a real forward pass, against the same ones asked alone."""

import numpy as np
import pytest

from bankml.engine.completion import Job
from bankml.engine.engine import Engine
from bankml.engine.memory import MIB
from bankml.engine.prompt_cache import PromptCache
from bankml.model.model import Model
from tests.engine.engine_toys import ByteVocabulary, GreedySampler, ToyPieces
from tests.tiny_model import tiny_model

CONVERSATIONS, TURNS, OPENING, QUESTION, ANSWER = 40, 3, 400, 40, 6
LAYERS, CONTEXT = 9, 1024


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model"), LAYERS)


class Conversation:
    """Grows by a question and the model's answer each turn; what the questions are depends on `number` alone."""

    def __init__(self, number):
        self._rng = np.random.default_rng(number)
        self.tokens = self._words(OPENING)

    def _words(self, n):
        return [int(token) for token in self._rng.integers(97, 123, n)]

    def turn(self, engine):
        """Answer and how many tokens were cached."""
        self.tokens += self._words(QUESTION)
        steps = list(engine.complete(Job(self.tokens, ANSWER), GreedySampler(), ToyPieces()))
        answer = [step.token for step in steps]
        self.tokens += answer
        return answer, steps[-1].progress.cached_tokens


def alone(model, number, cached):
    """Every turn of one conversation, asked with nothing between.

    `cached` is how much of each turn's prompt may be taken from the slot: all that is there, where nothing was evicted.
    """
    engine, conversation, answers = Engine(model, ByteVocabulary()), Conversation(number), []
    for most in cached:
        engine.slots[0].begin([*conversation.tokens[:most], -1], reuse=True)
        answers.append(conversation.turn(engine))
    return answers


def test_forty_interleaved_conversations_under_64_mib(verified):
    """The model's random weights make every answer hang on the last bit of every cell.

    So a conversation that was evicted, and whose prefix was computed again in larger batches, is compared with one that
    had to compute it again too.
    """
    model = Model.open(verified, CONTEXT, threads=2)
    cache = PromptCache(64 * MIB, CONTEXT)
    engine = Engine(model, ByteVocabulary(), prompt_cache=cache)
    numbers = range(CONVERSATIONS)
    conversations = {number: Conversation(number) for number in numbers}
    turns, found, lost, most = {number: [] for number in numbers}, 0, 0, 0
    for number in np.random.default_rng(7).permutation(list(numbers) * TURNS).tolist():
        held = len(conversations[number].tokens) - 1 if turns[number] else 0
        turns[number].append(conversations[number].turn(engine))
        cached = turns[number][-1][1]
        found, lost = found + (cached == held > 0), lost + (cached < held)
        assert cache.nbytes <= 64 * MIB
        most = max(most, cache.nbytes)
    for number in numbers:
        assert alone(model, number, [cached for _, cached in turns[number]]) == turns[number], number
    assert len({tuple(answer) for answers in turns.values() for answer, _ in answers}) == CONVERSATIONS * TURNS
    # Both happened: prefixes were found again whole, and others had been evicted.
    assert found > 20 and lost > 10 and most > 60 * MIB, (found, lost, most)


def test_half_the_bytes_of_f16(verified, monkeypatch):
    f16 = Model.open(verified, 256, threads=1).new_cells().cell_bytes
    monkeypatch.setenv("BANKML_CACHE_TYPE", "q8_0")
    assert Model.open(verified, 256, threads=1).new_cells().cell_bytes / f16 == 34 / 64
