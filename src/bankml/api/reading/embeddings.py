"""The body of `/v1/embeddings`, `/embeddings` and `/embedding`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api.reading import fields
from bankml.api.reading.json_body import read_object
from bankml.api.reading.prompts import read_prompts
from bankml.errors import RequestError
from bankml.library.request import EUCLIDEAN, EmbeddingRequest

ENCODINGS = ("float", "base64")
FORMAT = "The format to return the embeddings in. Can be either float or base64"
LARGEST_NORM = 1 << 16


@dataclass(frozen=True)
class EmbeddingBody:
    """A request and how its answer is written: `openai` as OpenAI's API does, `base64` with vectors as text."""

    request: EmbeddingRequest
    openai: bool
    base64: bool


def read_embeddings(data: bytes, openai: bool) -> EmbeddingBody:
    """Reads a body. A `content` in place of `input` is llama-server's own, and so is its answer then. Raises
    RequestError, in llama-server's words where it has some."""
    body = read_object(data)
    if "input" in body:
        given = body["input"]
    elif "content" in body:
        given, openai = body["content"], False
    else:
        raise RequestError('"input" or "content" must be provided')
    encoding = body.get("encoding_format", "float")
    if encoding not in ENCODINGS:
        raise RequestError(FORMAT)
    request = EmbeddingRequest(
        model=fields.string(body, "model"),
        inputs=tuple(read_prompts(given)),
        norm=fields.integer(body, ("embd_normalize",), EUCLIDEAN, -1, LARGEST_NORM),
        dimensions=read_dimensions(body),
        cache_prompt=fields.boolean(body, "cache_prompt", True),
    )
    return EmbeddingBody(request, openai, openai and encoding == "base64")


def read_dimensions(body: Mapping[str, Any]) -> int | None:
    """`dimensions`, None where it is not sent."""
    if body.get("dimensions") is None:
        return None
    return fields.integer(body, ("dimensions",), 1, 1, fields.INT32_MAX)
