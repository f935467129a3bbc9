"""`POST /v1/embeddings`, `/embeddings` and `/embedding`: OpenAI's answers and llama-server's own."""

import base64
from collections.abc import Sequence

from bankml.api.embeddings.computing import (
    Embedded,
    EmbeddingCall,
    Json,
    compute,
    normalized,
    reference_of,
    require_embeddings,
    shortened,
)
from bankml.api.generation import prompt_tokens
from bankml.api.reading.embeddings import EmbeddingBody, read_embeddings
from bankml.engine.parts import Vectors
from bankml.errors import NotSupported, RequestError
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.request import EmbeddingRequest
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.vectors import vector_bytes

NOTE = "embedding"
NOT_OPENAI = "Pooling type 'none' is not OAI compatible. Please use a different pooling type"


def openai_embeddings(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /v1/embeddings`."""
    return _embeddings(library, request, reply, openai=True)


def embeddings(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /embedding` and `/embeddings`, llama-server's own."""
    return _embeddings(library, request, reply, openai=False)


def _embeddings(library: Library, request: Request, reply: Reply, openai: bool) -> RequestOutcome:
    _require_served(library, openai)
    body = read_embeddings(request.body, openai)
    reference = reference_of(library, body.request.model)

    def inputs(resident: Resident) -> Sequence[Sequence[int]]:
        require_embeddings(resident)
        _require_pooled(resident, openai)
        _require_dimensions(resident, body.request)
        return [prompt_tokens(one.parts, resident.tokens) for one in body.request.inputs]

    def finish(resident: Resident, vectors: Vectors) -> Vectors:
        return _finished(resident, vectors, body.request)

    call = EmbeddingCall(request.body, request.arrived, reference, inputs, finish, reuse=body.request.cache_prompt)
    embedded = compute(library, call, reply)
    reply.whole(200, json_bytes(_openai(embedded, body, reference.name) if body.openai else _plain(embedded)))
    return embedded.outcome(NOTE)


def _require_served(library: Library, openai: bool) -> None:
    """What the loaded model refuses whatever the body says comes before its mistakes, as in llama-server."""
    resident = library.resident
    if resident is not None and len(library.references()) == 1:
        require_embeddings(resident)
        _require_pooled(resident, openai)


def _require_pooled(resident: Resident, openai: bool) -> None:
    if openai and resident.pooling == "none":
        raise RequestError(NOT_OPENAI)


def _require_dimensions(resident: Resident, request: EmbeddingRequest) -> None:
    """Raises NotSupported for fewer values of vectors that are one a token."""
    if request.dimensions is not None and resident.pooling == "none":
        raise NotSupported("Field 'dimensions': with pooling none vectors have all their values")


def _finished(resident: Resident, vectors: Vectors, request: EmbeddingRequest) -> Vectors:
    """A pooled vector normalized, and shortened where the model was made for embeddings; as in llama-server the field
    has no effect on others."""
    if resident.pooling == "none":
        return vectors
    vectors = normalized(vectors, request.norm)
    return shortened(vectors, request.dimensions, request.norm) if resident.made_for_embeddings else vectors


def _openai(embedded: Embedded, body: EmbeddingBody, model: str) -> Json:
    def entry(i: int, vector: Vectors) -> Json:
        value = base64.b64encode(vector_bytes(vector)).decode("ascii") if body.base64 else vector.tolist()
        encoding = {"encoding_format": "base64"} if body.base64 else {}
        return {"embedding": value, "index": i, "object": "embedding", **encoding}

    rows = embedded.rows
    return {
        "model": body.request.model or model,
        "object": "list",
        "usage": {"prompt_tokens": embedded.prompt_tokens, "total_tokens": embedded.prompt_tokens},
        "data": [entry(i, row) for i, row in enumerate(rows)],
        RECEIPT_KEY: embedded.receipt(vector_bytes(rows), len(rows)),
    }


def _plain(embedded: Embedded) -> list[Json]:
    """An array with an object an input, each with its vectors; the last one has the receipt."""
    entries: list[Json] = [{"index": i, "embedding": vectors.tolist()} for i, vectors in enumerate(embedded.vectors)]
    rows = embedded.rows
    entries[-1][RECEIPT_KEY] = embedded.receipt(vector_bytes(rows), len(rows))
    return entries
