"""The life of one request for embeddings or scores, whichever API it is for: queue, load, compute, receipt."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bankml import _native
from bankml.api.call import provenance_of
from bankml.engine.embedding import embeddable
from bankml.engine.parts import Vectors
from bankml.errors import NotFound, NotSupported, RequestError
from bankml.http.exchange import Reply, RequestOutcome
from bankml.library.reference import Reference
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.receipt.receipt import Tally

Json = dict[str, object]

NOT_SERVED = "This server does not support embeddings. Start it with `--embeddings`"
NO_RERANKING = "This server does not support reranking. Start it with `--reranking`"

Inputs = Callable[[Resident], Sequence[Sequence[int]]]
"""The tokens of each input, for a loaded model. Raises RequestError."""

Finish = Callable[[Resident, Vectors], Vectors]
"""What becomes of the vectors of an input."""


@dataclass(frozen=True)
class EmbeddingCall:
    """One request on its way to a model; `body` and `arrived` are what its receipt is about. The model stays loaded for
    `keep` seconds. `reuse`: what a slot has of an input may be used."""

    body: bytes
    arrived: float
    reference: Reference
    inputs: Inputs
    finish: Finish
    keep: float | None = FOR_GOOD
    reuse: bool = True


@dataclass(frozen=True)
class Embedded:
    """What was computed: the vectors of each input, float32 [1, width] or one row a token, their tokens' number,
    and how many of those were in a slot. `loading` is the seconds that loading the model took."""

    resident: Resident
    vectors: Sequence[Vectors]
    prompt_tokens: int
    cached_tokens: int
    loading: float
    tally: Tally

    def receipt(self, hashed: bytes, count: int) -> Json:
        """The receipt of an answer with `count` vectors or scores whose bytes are `hashed`."""
        self.tally.vectors(hashed, count)
        return self.tally.receipt(self.prompt_tokens, 0)

    def outcome(self, note: str) -> RequestOutcome:
        """For the log and the metrics."""
        return RequestOutcome(200, self.prompt_tokens, self.cached_tokens, 0, note)

    @property
    def rows(self) -> Vectors:
        """All vectors in their order, float32 [vectors, width]."""
        return np.concatenate(self.vectors) if self.vectors else np.zeros((0, 0), np.float32)


def compute(library: Library, call: EmbeddingCall, reply: Reply) -> Embedded:
    """Waits for the model, loads it and computes the inputs, one after the other. Errors of the request are raised
    before it waits, where its model is loaded. Raises RequestError, NotSupported, InputTooLarge, ModelChanged,
    Cancelled."""
    resident = library.resident_as(call.reference)
    inputs = None if resident is None else checked(call, resident)
    with library.share(call.reference, reply.cancelled):
        began = time.monotonic()
        ready = library.ready(call.reference)
        loading = time.monotonic() - began
        try:
            if inputs is None or ready is not resident:
                inputs = checked(call, ready)
            ready.check_unchanged()
            tally = Tally(provenance_of(ready, call.reference), call.body, call.arrived)
            found = [ready.engine.embed(one, reuse=call.reuse, cancelled=reply.cancelled) for one in inputs]
            vectors = [call.finish(ready, one.vectors) for one in found]
            ready.check_unchanged()  # the receipt is about the file as it was throughout
            cached = sum(one.cached for one in found)
            if cached and ready.engine.restored:
                tally.restored_slot(ready.engine.restored[-1])
            return Embedded(ready, vectors, sum(map(len, inputs)), cached, loading, tally)
        finally:
            library.keep(call.keep)


def checked(call: EmbeddingCall, resident: Resident) -> Sequence[Sequence[int]]:
    """The tokens of each input, of which none is empty or too long."""
    inputs = call.inputs(resident)
    if not all(inputs):
        raise RequestError("Input content cannot be empty")
    for one in inputs:
        embeddable(len(one), resident.engine.model)
    return inputs


def reference_of(library: Library, name: str | None) -> Reference:
    """The model that `name` means. A server of one model answers for every name, as llama-server: clients of embeddings
    have OpenAI's names built in. Raises RequestError, NotFound."""
    try:
        return library.resolve(name)
    except NotFound:
        if len(library.references()) > 1:
            raise
        return library.resolve(None)


def require_embeddings(resident: Resident) -> None:
    """Raises NotSupported where the model gives no embeddings here."""
    if not resident.embeds:
        raise NotSupported(NOT_SERVED)
    if resident.pooling == "rank":
        raise NotSupported("with pooling rank the model scores documents: POST /v1/rerank")


def normalized(vectors: Vectors, norm: int) -> Vectors:
    """The vector of an input, its norm brought to 1 by llama-server's rule."""
    _native.normalize(vectors[0], norm)
    return vectors


def shortened(vectors: Vectors, dimensions: int | None, norm: int) -> Vectors:
    """The first `dimensions` values of the vector, normalized again. Raises RequestError where there are fewer."""
    width = vectors.shape[1]
    if dimensions is None or dimensions == width:
        return vectors
    if dimensions > width:
        raise RequestError(f"Field 'dimensions': the model's vectors have {width} values, not {dimensions}")
    return normalized(vectors[:, :dimensions].copy(), norm)
