"""Every architecture: the reference's recorded probabilities, in each instruction set and type of K/V cache."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bankml import _native
from bankml.engine.checkpoints import TAIL
from bankml.model.span import Span
from bankml.sampling.logprobs import token_probs
from tests.lone_sequence import LoneSequence
from tests.model.test_kernels import with_kernels
from tests.tiny_architectures import CONTEXT, TINY, prompt, tiny_architecture

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "model" / "architectures.json").read_text())
# One row, some, a tile of attention with a row over, a second micro-batch, and more than the shorter cache of a sliding
# window; then lone rows, which split long caches.
LENGTHS = (1, 5, 65, 530, 900)
SHORT = 65  # the definition is slow
STEPS, TOP = 3, 4


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Opens a tiny model with a cache type; each is written once."""
    folder, verified, models = tmp_path_factory.mktemp("architectures"), {}, {}

    def of(name, cache):
        if name not in verified:
            verified[name] = tiny_architecture(folder, name)
        if (name, cache) not in models:
            environment = {"BANKML_CACHE_TYPE": cache, "BANKML_LLAMA_THREADS": "2"}
            models[name, cache] = LoneSequence.open(verified[name], CONTEXT, 2, environment, parallel=3)
        return models[name, cache]

    return of


def probabilities(model, n, tokens):
    """After a prompt of n tokens and after each of `tokens`: the likeliest tokens and their logarithms' bits."""
    found = []
    cuts = {0, n} | ({at for at in (n - TAIL - 512, n - TAIL) if at > 0} if model.window else set())
    for begin, end in pairwise(sorted(cuts)):
        for start in range(begin, end, 512):
            batch = prompt(n)[start : min(start + 512, end)]
            model.forward(batch, start, logits=start + len(batch) == n)
    for i, token in enumerate(tokens):
        top = token_probs(model.logits, token, TOP).top
        found.append([[one, int(np.float32(value).view(np.uint32))] for one, value in top])
        if i + 1 < len(tokens):
            model.forward([token], n + i, logits=True)
    return found


@pytest.mark.parametrize("kernel_set", _native.kernel_sets())
@pytest.mark.parametrize("cache", ["f16", "q8_0"])
@pytest.mark.parametrize("name", TINY)
def test_recorded_probabilities(opened, name, cache, kernel_set):
    """Made by scripts/record_architectures.py with the reference's llama-server."""
    model = opened(name, cache)
    for case in RECORDED[name][cache]:
        if kernel_set == "portable" and case["n"] > SHORT:
            continue
        got = []
        with_kernels(kernel_set, lambda case=case, got=got: got.extend(probabilities(model, case["n"], case["tokens"])))
        assert got == case["top"], f"a prompt of {case['n']} tokens"


def test_every_architecture_is_recorded():
    assert set(RECORDED) == set(TINY)
    assert all(
        [case["n"] for case in RECORDED[name][cache]] == list(LENGTHS) for name in TINY for cache in RECORDED[name]
    )


@pytest.mark.parametrize("name", TINY)
def test_sequences_that_are_computed_together_have_the_bits_that_they_have_alone(opened, name):
    """Each at another length, in front of and behind where a sliding window's cells are used again."""
    lone, lengths = opened(name, "f16"), (3, 70, 900)

    def begun(n):
        cells = lone.model.new_cells()
        for start in range(0, n, 512):
            batch = prompt(n)[start : min(start + 512, n)]
            logits = lone.model.forward([Span(batch, start, cells)], start + len(batch) == n)
        return cells, logits[0].copy()

    def rows(spans):
        return [row.view(np.uint32).tolist() for row in lone.model.forward(spans, True)]

    alone, together = [begun(n) for n in lengths], [begun(n) for n in lengths]
    assert [logits.tolist() for _, logits in alone] == [logits.tolist() for _, logits in together]
    for i in range(3):
        expected = [rows([Span([65 + i], n + i, cells)])[0] for n, (cells, _) in zip(lengths, alone, strict=True)]
        spans = [Span([65 + i], n + i, cells) for n, (cells, _) in zip(lengths, together, strict=True)]
        assert rows(spans) == expected


@pytest.mark.parametrize("name", TINY)
def test_a_copy_of_a_sequence_goes_on_as_the_sequence(opened, name):
    lone = opened(name, "f16")
    cells, copy = lone.model.new_cells(), lone.model.new_cells()
    for start in (0, 512):
        lone.model.forward([Span(prompt(600)[start : start + 512], start, cells)], start > 0)
    copy.copy_from(cells, 600)
    first, second = (lone.model.forward([Span([65], 600, own)], True)[0].copy() for own in (cells, copy))
    assert np.array_equal(first.view(np.uint32), second.view(np.uint32))
