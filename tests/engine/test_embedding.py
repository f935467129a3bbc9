"""Embeddings in the engine: slots, what is reused, cancellation, and an input that is too long."""

import numpy as np
import pytest

from bankml.engine.embedding import embeddable
from bankml.engine.engine import Engine
from bankml.errors import Cancelled, ContextExceeded, InputTooLarge
from bankml.model.model import EmbeddingOptions, Model
from bankml.text.tokenizer import Tokenizer
from tests.model.test_embedders import inputs
from tests.tiny_embedders import tiny_embedder

CONTEXT = 1024


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedders")
    return {name: tiny_embedder(folder, name) for name in ("bert", "qwen3-embedding")}


@pytest.fixture
def engine_of(files):
    made = []

    def of(name, parallel=1, **options):
        verified = files[name]
        model = Model.open(verified, CONTEXT, 2, parallel=parallel, embeddings=EmbeddingOptions(**options))
        made.append(Engine(model, Tokenizer.from_header(verified.header), parallel))
        return made[-1]

    yield of
    for engine in made:
        engine.close()


def test_one_slot_keeps_an_input_and_continues_from_it(engine_of):
    engine = engine_of("qwen3-embedding")
    assert engine.embed(inputs(20)).cached == 0
    assert engine.slots[0].tokens == tuple(inputs(20))
    assert engine.embed([*inputs(20), 70, 71]).cached == 20
    assert engine.embed([*inputs(20), 70, 71]).cached == 21  # the last token is always computed


@pytest.mark.parametrize(("parallel", "pooling"), [(2, "last"), (1, "mean"), (1, "cls"), (1, "none")])
def test_everything_else_is_computed_whole(engine_of, parallel, pooling):
    engine = engine_of("qwen3-embedding", parallel, pooling=pooling)
    first, again = engine.embed(inputs(20)), engine.embed(inputs(20))
    assert (first.cached, again.cached) == (0, 0) and np.array_equal(first.vectors, again.vectors)


def test_an_encoder_leaves_nothing_in_its_slot(engine_of):
    engine = engine_of("bert")
    first = engine.embed(inputs(20)).vectors
    assert engine.slots[0].tokens == () and np.array_equal(engine.embed(inputs(20)).vectors, first)


def test_the_micro_batches_of_a_long_input(engine_of):
    """Each is of `longest` tokens, on which the bits depend."""
    engines = [engine_of("qwen3-embedding", 2, longest=longest) for longest in (64, 600, CONTEXT)]
    found = [engine.embed(inputs(900)).vectors for engine in engines]
    assert all(np.allclose(one, found[-1], atol=0.05) for one in found)
    assert not np.array_equal(found[0], found[-1])


@pytest.mark.parametrize("name", ["bert", "qwen3-embedding"])
def test_a_client_that_leaves_frees_the_slot(engine_of, name):
    engine, calls = engine_of(name), []

    def cancelled():
        calls.append(1)
        return len(calls) > 3

    with pytest.raises(Cancelled):
        engine.embed(inputs(300), cancelled=cancelled)
    assert not engine.slots.busy(0) and engine.embed(inputs(3)).vectors.shape == (1, 64)


def test_inputs_that_are_too_long(engine_of):
    """In llama-server's words: of the micro-batch, then of the context."""
    bert, qwen = engine_of("bert", longest=310).model, engine_of("qwen3-embedding").model
    embeddable(300, bert)
    embeddable(CONTEXT - 1, qwen)
    with pytest.raises(InputTooLarge, match=r"input \(311 tokens\) is too large .* \(current batch size: 310\)"):
        embeddable(311, bert)
    with pytest.raises(ContextExceeded, match=r"input \(301 tokens\) is larger .* \(300 tokens\)"):
        embeddable(301, bert)
    with pytest.raises(ContextExceeded, match=r"request \(1024 tokens\) exceeds"):
        embeddable(CONTEXT, qwen)
