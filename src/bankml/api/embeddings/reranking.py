"""`POST /v1/rerank` and its other paths: documents in the order of a classifier's scores."""

from collections.abc import Sequence

import numpy as np

from bankml.api.embeddings.computing import NO_RERANKING, Embedded, EmbeddingCall, Json, compute, reference_of
from bankml.api.reading.reranking import RerankBody, read_rerank
from bankml.errors import NotSupported
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.vectors import score_bytes

NOTE = "rerank"


def rerank(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """Scores each document against the question."""
    resident = library.resident
    if resident is not None and len(library.references()) == 1:
        _require_classifier(resident)
    body = read_rerank(request.body)
    reference = reference_of(library, body.model)

    def inputs(resident: Resident) -> Sequence[Sequence[int]]:
        _require_classifier(resident)
        return [resident.pair(body.query, document) for document in body.documents]

    call = EmbeddingCall(request.body, request.arrived, reference, inputs, lambda _, vectors: vectors[:, :1])
    embedded = compute(library, call, reply)
    reply.whole(200, json_bytes(_answer(embedded, body, reference.name)))
    return embedded.outcome(NOTE)


def _require_classifier(resident: Resident) -> None:
    if not resident.embeds or resident.pooling != "rank":
        raise NotSupported(NO_RERANKING)


def _answer(embedded: Embedded, body: RerankBody, model: str) -> Json | list[Json]:
    """The best first; equal ones stay in the order of the request."""
    scores = embedded.rows[:, 0]
    order = np.argsort(-scores, kind="stable")[: body.top].tolist()
    label = "score" if body.tei else "relevance_score"
    texts = [{"text": body.documents[i]} if body.texts else {} for i in order]
    results: list[Json] = [{"index": i, label: float(scores[i]), **text} for i, text in zip(order, texts, strict=True)]
    receipt = embedded.receipt(score_bytes([(i, float(scores[i])) for i in order]), len(order))
    if body.tei:
        if results:
            results[-1][RECEIPT_KEY] = receipt
        return results
    return {
        "model": body.model or model,
        "object": "list",
        "usage": {"prompt_tokens": embedded.prompt_tokens, "total_tokens": embedded.prompt_tokens},
        "results": results,
        RECEIPT_KEY: receipt,
    }
