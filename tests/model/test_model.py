"""A model of real files: what it computes again, what it refuses, and that its bits do not depend on the threads."""

import os

import numpy as np
import pytest

from bankml.errors import ModelChanged, UsageError
from bankml.gate.verify import record, verify
from bankml.gguf.block_types import F16
from bankml.gguf.header import read_header
from bankml.gguf.values import ValueType
from bankml.gguf.writer import encode_value, writing
from bankml.model.limits import CONTEXT_STEP, context_size
from bankml.model.model import Model
from bankml.model.span import Span
from tests.lone_sequence import LoneSequence
from tests.tiny_model import N_FF, entries, tensors, tiny_model

TOKENS = [5, 80, 200, 3, 3, 99, 120, 17] * 20


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model"))


def logits_after(model, *batches):
    position = 0
    for batch in batches:
        model.forward(batch, position, logits=batch is batches[-1])
        position += len(batch)
    return model.logits.copy()


def test_the_bits_do_not_depend_on_the_threads(verified):
    answers = []
    for threads in (1, 2, 3, 5):
        model = LoneSequence.open(verified, 512, threads)
        answers.append(logits_after(model, TOKENS, [7], [9]))
        model.close()
    assert all(np.array_equal(answers[0].view(np.uint32), other.view(np.uint32)) for other in answers)
    assert np.isfinite(answers[0]).all() and answers[0].std() > 0


@pytest.mark.parametrize("start", range(4))
def test_a_file_may_be_aligned_to_nothing(tmp_path, start):
    """Alignment 1: the tensors follow the header at once, wherever that ends."""
    path, specs = tmp_path / "x.gguf", tensors(1, N_FF)
    for more in range(4):
        keys = [
            ("general.alignment", encode_value(ValueType.UINT32, 1)),
            ("x", encode_value(ValueType.STRING, "x" * more)),
        ]
        with writing(path, [*entries(1, 512, N_FF), *keys], specs, 1) as out:
            for spec in specs:
                out.write(np.ones(spec.shape, np.float16 if spec.type is F16 else np.float32).tobytes())
        if read_header(path).data_offset % 4 == start:
            break
    record(path, tmp_path / "FORK.json")
    verified = verify(path, tmp_path / "FORK.json")
    assert verified.header.data_offset % 4 == start
    model = LoneSequence.open(verified, 256, 1)
    assert all(layer.attn_norm.weight.flags.aligned for layer in model.model._decoder._layers)
    assert np.isfinite(logits_after(model, [1, 2])).all()
    model.close()


def test_a_cell_is_written_over_when_its_position_comes_again(verified):
    fresh, used = LoneSequence.open(verified, 512), LoneSequence.open(verified, 512)
    logits_after(used, TOKENS[::-1], [1], [2])
    assert np.array_equal(logits_after(fresh, TOKENS), logits_after(used, TOKENS))


def test_logits_are_computed_where_they_are_wanted(verified):
    model, cells = (opened := Model.open(verified, 512)), opened.new_cells()
    assert model.forward([Span(TOKENS, 0, cells)], logits=False) is None
    assert model.forward([Span([1], len(TOKENS), cells)], logits=True).shape == (1, model.n_vocab)


def lone_logits(verified, prompts, steps):
    """The logits of each prompt and of `steps` tokens after it, one sequence at a time."""
    found = []
    for prompt in prompts:
        model = LoneSequence.open(verified, 512)
        rows = [logits_after(model, prompt)]
        for i in range(steps):
            model.forward([7 + i], len(prompt) + i, logits=True)
            rows.append(model.logits.copy())
        found.append(rows)
    return found


@pytest.mark.parametrize("kind", ["f16", "q8_0"])
def test_sequences_that_are_computed_together_have_the_bits_that_they_have_alone(verified, monkeypatch, kind):
    monkeypatch.setenv("BANKML_CACHE_TYPE", kind)
    prompts = [[5, 80, 9], TOKENS, TOKENS[:1], [200] * 40, TOKENS[3:90]]
    expected = lone_logits(verified, prompts, 3)
    model = Model.open(verified, 512, 2, parallel=len(prompts))
    cells = [model.new_cells() for _ in prompts]
    for prompt, own, (first, *_) in zip(prompts, cells, expected, strict=True):
        assert np.array_equal(model.forward([Span(prompt, 0, own)], True)[0], first)
    for i in range(3):
        spans = [Span([7 + i], len(prompt) + i, own) for prompt, own in zip(prompts, cells, strict=True)]
        logits = model.forward(spans, True)
        for row, rows in zip(logits, expected, strict=True):
            assert np.array_equal(row.view(np.uint32), rows[i + 1].view(np.uint32))


def test_tokens_of_others_between_the_operations_of_a_prompt_change_nothing(verified):
    prompt = TOKENS + [3] * 20
    (alone, *_), (first, *rest) = lone_logits(verified, [prompt, [5, 80, 9]], 100)
    model = Model.open(verified, 512, 2, parallel=2)
    own, other, position, between = model.new_cells(), model.new_cells(), 3, []
    assert np.array_equal(model.forward([Span([5, 80, 9], 0, other)], True)[0], first)

    def checkpoint():
        i = len(between)
        if i < len(rest):
            between.append(model.forward([Span([7 + i], position + i, other)], True)[0].copy())

    logits = model.forward([Span(prompt, 0, own)], True, checkpoint)
    assert np.array_equal(logits[0], alone) and len(between) > 5
    assert all(np.array_equal(row, wanted) for row, wanted in zip(between, rest, strict=False))


def test_only_lone_tokens_are_computed_together(verified):
    model = Model.open(verified, 512, 2, parallel=2)
    cells = [model.new_cells() for _ in range(3)]
    with pytest.raises(ValueError, match="at most 2"):
        model.forward([Span([1], 0, own) for own in cells], True)
    with pytest.raises(ValueError, match="one token"):
        model.forward([Span([1, 2], 0, own) for own in cells[:2]], True)


@pytest.mark.parametrize(
    "tokens,position,says", [([], 0, "1 to 512"), ([1] * 513, 0, "1 to 512"), ([1, 1], 511, "fit")]
)
def test_batches_that_do_not_fit(verified, tokens, position, says):
    with pytest.raises(ValueError, match=says):
        LoneSequence.open(verified, 512).forward(tokens, position, logits=True)


def test_tokens_outside_the_vocabulary(verified):
    model = LoneSequence.open(verified, 512)
    for token in (-1, 257):
        with pytest.raises(ValueError, match="not in the vocabulary"):
            model.forward([token], 0, logits=True)


def test_the_context_is_rounded_up_as_llama_cpp_rounds_it():
    assert [context_size(n, 8192) for n in (1, 256, 257, 2048)] == [256, 256, 512, 2048]
    assert context_size(9000, 8192) == 8192 and context_size(300, 400) == 400 and CONTEXT_STEP == 256


def test_what_becomes_of_the_file_later_changes_no_bit(tmp_path):
    mine = tiny_model(tmp_path)
    model = LoneSequence.open(mine, 512)
    before = logits_after(model, TOKENS)
    with open(mine.path, "r+b") as file:
        file.seek(mine.header.data_offset)
        file.write(bytes(1000))
        file.truncate(4096)
    assert np.array_equal(before, logits_after(model, TOKENS))


def test_a_file_that_changed_is_not_opened(tmp_path):
    changed = tiny_model(tmp_path)
    os.utime(changed.path, ns=(1, 1))
    with pytest.raises(ModelChanged, match="changed since it was verified"):
        LoneSequence.open(changed, 512)


@pytest.mark.parametrize("name", ["BANKML_THREADS", "BANKML_LLAMA_THREADS"])
@pytest.mark.parametrize("value", ["0", "-1", "two", "1025", "1.5", "²"])
def test_environment_that_makes_no_sense(verified, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=f"{name} must be a whole number from 1 to 256"):
        LoneSequence.open(verified, 512)


def test_a_context_of_no_tokens(verified):
    with pytest.raises(UsageError, match="must be 1 to 16777216 tokens"):
        LoneSequence.open(verified, 0)


def test_every_rows_logits_are_those_of_the_tokens_one_by_one(tmp_path, monkeypatch):
    """Close to them: a batch's products round otherwise. The parts in which rows are given change no bit."""
    alone = LoneSequence.open(tiny_model(tmp_path), 256, 1)
    model, cells = alone.model, alone.model.new_cells()
    tokens = [int(token) for token in np.random.default_rng(3).integers(0, 256, 150)]

    def scored(rows):
        monkeypatch.setattr("bankml.model.decoder.SCORED_ROWS", rows)
        parts = []
        for at in (0, 100):
            span = Span(tokens[at : at + 100], at, cells)
            model.score(span, lambda position, logits: parts.append((position, logits)))
        assert [at for at, _ in parts] == list(np.cumsum([0] + [len(part) for _, part in parts])[:-1])
        return np.concatenate([part for _, part in parts])

    whole, parts = scored(512), scored(32)
    assert whole.shape == (150, model.n_vocab) and np.array_equal(whole, parts)
    for position, token in enumerate(tokens):
        alone.forward([token], position, logits=True)
        assert np.allclose(alone.logits, whole[position], atol=0.05 * np.abs(alone.logits).max())
