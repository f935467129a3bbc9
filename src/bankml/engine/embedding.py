"""The order of one embedding: slot, the input in micro-batches, and the vector that the last of them gives."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from bankml.engine.completion import Compute, Event, fits
from bankml.engine.parts import EmbeddingPass, Vectors
from bankml.engine.slot import Slot
from bankml.errors import ContextExceeded, InputTooLarge
from bankml.model.span import Span


@dataclass(frozen=True)
class Embedding:
    """The vectors of an input, float32 [1, width] or one row a token; `cached` of its tokens were in the slot."""

    vectors: Vectors
    cached: int


def embeddable(n_tokens: int, model: EmbeddingPass) -> None:
    """Raises InputTooLarge or ContextExceeded, in llama-server's words, for an input of too many tokens."""
    if not model.embeds_whole:
        fits(n_tokens, model.n_ctx)
        return
    if n_tokens > model.longest:
        advice = f"increase the physical batch size (current batch size: {model.longest})"
        raise InputTooLarge(f"input ({n_tokens} tokens) is too large to process. {advice}")
    if n_tokens > model.n_ctx:
        size = f"input ({n_tokens} tokens) is larger than the max context size ({model.n_ctx} tokens). skipping"
        raise ContextExceeded(size, n_tokens, model.n_ctx)


def embed(
    tokens: Sequence[int], slot: Slot, model: EmbeddingPass, reuse: bool
) -> Generator[Event, Vectors | None, Embedding]:
    """Yields what has to be computed of an input, and returns its vectors.

    Only an input that need not be computed whole continues, with `reuse`, from what the slot has of it. A model with a
    K/V cache leaves the input in the slot.
    """
    cached = slot.begin(tokens, reuse and not model.embeds_whole)
    vectors: Vectors | None = None
    while (position := len(slot)) < len(tokens):
        batch = list(tokens[position : position + model.longest])
        last = position + len(batch) == len(tokens)
        vectors = yield Compute(Span(batch, position, slot.cells), logits=False, embeds=last)
        slot.extend(batch)
    if not model.generates:
        slot.clear()
    assert vectors is not None  # a slot never has the last token of an input
    return Embedding(vectors, cached)
