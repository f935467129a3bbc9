"""The body of `/v1/rerank` and of its other paths: a question, and documents to score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api.reading import fields
from bankml.api.reading.json_body import read_object
from bankml.errors import RequestError

MAX_DOCUMENTS = 2048


@dataclass(frozen=True)
class RerankBody:
    """`top`: so many results, the best first; None: all. `tei`: the answer has the form of Text Embeddings Inference,
    else Jina's; `texts`: it repeats the documents."""

    model: str | None
    query: str
    documents: tuple[str, ...]
    top: int | None
    tei: bool
    texts: bool


def read_rerank(data: bytes) -> RerankBody:
    """Raises RequestError, in llama-server's words where it has some."""
    body = read_object(data)
    if "query" not in body:
        raise RequestError('"query" must be provided')
    if not isinstance(body["query"], str):
        raise RequestError('"query" must be a string')
    tei = "texts" in body
    return RerankBody(
        model=fields.string(body, "model"),
        query=body["query"],
        documents=_documents(body),
        top=None if body.get("top_n") is None else fields.integer(body, ("top_n",), 0, 0, fields.INT32_MAX),
        tei=tei,
        texts=tei and fields.boolean(body, "return_text", False),
    )


def _documents(body: Mapping[str, Any]) -> tuple[str, ...]:
    given = body["documents"] if body.get("documents") is not None else body.get("texts")
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise RequestError('"documents" must be a non-empty string array')
    if len(given) > MAX_DOCUMENTS:
        raise fields.refuse("documents", f"at most {MAX_DOCUMENTS} documents a request, but got {len(given)}")
    return tuple(given)
