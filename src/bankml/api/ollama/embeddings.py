"""`POST /api/embed` and `POST /api/embeddings`: Ollama's routes of embeddings, with a receipt."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bankml.api.embeddings.computing import (
    Embedded,
    EmbeddingCall,
    Json,
    compute,
    normalized,
    require_embeddings,
    shortened,
)
from bankml.api.embeddings.routes import NOTE
from bankml.api.ollama.durations import FOREVER, keep_alive_seconds, nanoseconds_of
from bankml.api.ollama.options import read_options
from bankml.api.ollama.request import model_name
from bankml.api.reading import fields
from bankml.api.reading.embeddings import read_dimensions
from bankml.api.reading.json_body import read_object
from bankml.engine.parts import Vectors
from bankml.errors import ContextExceeded, NotSupported, RequestError
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.layer import context_of
from bankml.library.request import EUCLIDEAN, EmbeddingRequest, RawPrompt
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.vectors import vector_bytes

NO_NORM = -1


@dataclass(frozen=True)
class OllamaEmbedding:
    """One request. `keep_alive` is in seconds, None where it was not sent; `num_ctx` the context in tokens, None for
    the model's."""

    request: EmbeddingRequest
    model: str
    keep_alive: float | None
    num_ctx: int | None


def embed(library: Library, request: Request, reply: Reply, keep_alive: float) -> RequestOutcome:
    """`POST /api/embed`: a text or several; the vectors have the length 1. Without any the model is loaded."""
    body = read_object(request.body)
    asked = _read(body, _texts(body.get("input")), EUCLIDEAN, read_dimensions(body))

    def answer(embedded: Embedded | None) -> Json:
        rows: Sequence[Vectors] = [] if embedded is None else list(embedded.rows)
        value: Json = {"model": asked.model, "embeddings": [row.tolist() for row in rows]}
        if embedded is None:
            return value
        value["total_duration"] = nanoseconds_of(time.monotonic() - request.arrived)
        value["load_duration"] = nanoseconds_of(embedded.loading)
        value["prompt_eval_count"] = embedded.prompt_tokens
        return value | {RECEIPT_KEY: embedded.receipt(vector_bytes(embedded.rows), len(rows))}

    embedded = _compute(library, request, asked, reply, keep_alive)
    reply.whole(200, json_bytes(answer(embedded)))
    return RequestOutcome(200, note="load") if embedded is None else embedded.outcome(NOTE)


def embeddings(library: Library, request: Request, reply: Reply, keep_alive: float) -> RequestOutcome:
    """`POST /api/embeddings`, the older route: one text, whose vector is as the model gives it, not normalized."""
    body = read_object(request.body)
    prompt = fields.string(body, "prompt") or ""
    asked = _read(body, [prompt] if prompt else [], NO_NORM, None)
    embedded = _compute(library, request, asked, reply, keep_alive)
    answer: Json = {"embedding": []}
    if embedded is not None:
        receipt = embedded.receipt(vector_bytes(embedded.rows), 1)
        answer = {"embedding": embedded.rows[0].tolist(), RECEIPT_KEY: receipt}
    reply.whole(200, json_bytes(answer))
    return RequestOutcome(200, note="load") if embedded is None else embedded.outcome(NOTE)


def _texts(given: object) -> Sequence[str]:
    if given is None or given == "":
        return []
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise RequestError("invalid input type: input must be a string or an array of strings")
    return texts


def _read(body: Mapping[str, Any], texts: Sequence[str], norm: int, dimensions: int | None) -> OllamaEmbedding:
    model = model_name(body)
    keep_alive = None if body.get("keep_alive") is None else keep_alive_seconds(body["keep_alive"])
    options = read_options(fields.mapping(body, "options"))
    inputs = tuple(RawPrompt((text,)) for text in texts)
    truncate = fields.boolean(body, "truncate", True)
    request = EmbeddingRequest(model, inputs, norm, dimensions, truncate)
    return OllamaEmbedding(request, model, keep_alive, options.num_ctx)


def _compute(
    library: Library, http: Request, asked: OllamaEmbedding, reply: Reply, keep_alive: float
) -> Embedded | None:
    """The vectors; None where there is no input and the model is only loaded."""
    reference = library.resolve(asked.model)
    seconds = keep_alive if asked.keep_alive is None else asked.keep_alive
    n_ctx = context_of(reference.name, reference.layer, library.n_ctx) if asked.num_ctx is None else asked.num_ctx
    request = asked.request

    def inputs(resident: Resident) -> Sequence[Sequence[int]]:
        require_embeddings(resident)
        if resident.pooling == "none":
            raise NotSupported("with pooling none there is a vector a token: POST /embedding, or serve with --pooling")
        most = _most_tokens(resident, n_ctx)
        return [_tokens(resident, str(one.parts[0]), most, request.truncate) for one in request.inputs]

    def finish(resident: Resident, vectors: Vectors) -> Vectors:
        return shortened(normalized(vectors, request.norm), request.dimensions, request.norm)

    keep = FOR_GOOD if seconds == FOREVER else seconds
    embedded = compute(library, EmbeddingCall(http.body, http.arrived, reference, inputs, finish, keep), reply)
    return embedded if request.inputs else None


def _most_tokens(resident: Resident, n_ctx: int) -> int:
    """The tokens of the longest input that the model embeds here."""
    model = resident.engine.model
    most = min(n_ctx, model.n_ctx)
    return min(most, model.longest) if model.embeds_whole else min(most, model.n_ctx - 1)


def _tokens(resident: Resident, text: str, most: int, truncate: bool) -> Sequence[int]:
    """The tokens of a text; of one that is too long the first, where `truncate`, with what texts begin and end with."""
    tokens = resident.tokens.encode(text, add_special=True)
    if len(tokens) <= most:
        return tokens
    if not truncate:
        raise ContextExceeded("the input length exceeds the context length", len(tokens), most)
    room = most - len(resident.tokens.added([]))
    return resident.tokens.added(resident.tokens.encode(text)[: max(0, room)])
