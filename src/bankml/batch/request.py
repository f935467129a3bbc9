"""One line of a batch's input: OpenAI's form `{"custom_id", "method", "url", "body"}`, or a chat request alone.

What is computed is the line's body with what makes its answer a function of the body and the model alone:
`"cache_prompt": false`, and a `seed` that is derived from the body where it names none. Every worker gets these bytes,
and the receipt is about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api.reading.json_body import kind, read_object
from bankml.errors import RequestError
from bankml.http.json_out import json_bytes
from bankml.receipt.receipt import sha256_hex
from bankml.sampling.parameters import RANDOM_SEED

CHAT, TEXT, EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
URLS = (CHAT, TEXT, EMBEDDINGS)

MOST_LINE = 16 << 20
"""Bytes of a line, as of a request over HTTP."""

ONE_ANSWER = ("n", "n_cmpl", "best_of")
NO_SEED = (None, -1, RANDOM_SEED)


@dataclass(frozen=True)
class InputLine:
    """A line, without its end. `number` counts all lines from 1; of one that is `too_long` the rest is left out."""

    number: int
    raw: bytes
    too_long: bool = False

    @property
    def id(self) -> str:
        """The id of its line in the output: it shows that both belong together."""
        return f"batch_req_{sha256_hex(b'%d ' % self.number + self.raw)[:32]}"


@dataclass(frozen=True)
class BatchRequest:
    """A request of line `number`. `body` are the bytes that are computed, `order` is what requests with a shared prefix
    have in common: the model's name and the beginning of the prompt."""

    number: int
    id: str
    custom_id: str
    url: str
    body: bytes
    order: str

    @property
    def request_sha256(self) -> str:
        return sha256_hex(self.body)


@dataclass(frozen=True)
class BadLine:
    """A line that is no request; `message` is a sentence that says why. `request_sha256` is that of the line."""

    number: int
    id: str
    custom_id: str | None
    message: str
    request_sha256: str


def read_line(line: InputLine) -> BatchRequest | BadLine:
    """The request of a line."""
    found: dict[str, Any] = {}
    try:
        if line.too_long:
            raise RequestError(f"the line is longer than {MOST_LINE} bytes")
        found = read_object(line.raw)
        return _request(line, found)
    except RequestError as error:
        custom_id = found.get("custom_id")
        known = custom_id if isinstance(custom_id, str) else None
        message = error.message.replace("the body", "the line") if not found else error.message
        return BadLine(line.number, line.id, known, message, sha256_hex(line.raw))


def _request(line: InputLine, found: Mapping[str, Any]) -> BatchRequest:
    url: Any
    custom_id: Any
    body: Any
    if "messages" in found and "body" not in found:
        body = {name: value for name, value in found.items() if name != "custom_id"}
        url, custom_id = CHAT, found.get("custom_id", f"line-{line.number}")
    else:
        url, custom_id, body = found.get("url"), found.get("custom_id"), found.get("body")
        if found.get("method") != "POST":
            raise RequestError(f"Field 'method': expected \"POST\", not {_shown(found.get('method'))}")
    if not isinstance(custom_id, str) or not custom_id:
        raise RequestError(f"Field 'custom_id': expected a string that is not empty, not {_shown(custom_id)}")
    if url not in URLS:
        raise RequestError(f"Field 'url': expected one of {', '.join(URLS)}, not {_shown(url)}")
    if not isinstance(body, dict):
        raise RequestError(f"Field 'body': expected an object, not {kind(body)}")
    computed = json_bytes(computed_body(url, body))
    return BatchRequest(line.number, line.id, custom_id, url, computed, _order(body))


def computed_body(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """What is computed of a request's body. Raises RequestError for what a batch does not have."""
    if body.get("stream"):
        raise RequestError("Field 'stream': a batch has no streams; leave it out")
    if body.get("verbose"):
        raise RequestError("Field 'verbose': it reports times, which an answer of a batch does not have; leave it out")
    if body.get("id_slot") not in (None, -1):
        raise RequestError("Field 'id_slot': a batch chooses its slots itself; leave it out")
    for name in ONE_ANSWER:
        if body.get(name) not in (None, 1):
            raise RequestError(f"Field '{name}': a line has one answer; give a line for each, with seeds of their own")
    computed = {name: value for name, value in body.items() if name not in ("stream", "id_slot", "cache_prompt")}
    computed["cache_prompt"] = False
    if url != EMBEDDINGS and computed.get("seed") in NO_SEED:
        computed["seed"] = derived_seed(body)
    return computed


def derived_seed(body: Mapping[str, Any]) -> int:
    """The seed of a request that names none: the first four bytes of the sha256 of its body as JSON, modulo 2^32-1
    (2^32-1 itself means a random seed)."""
    return int(sha256_hex(json_bytes(body))[:8], 16) % RANDOM_SEED


def _order(body: Mapping[str, Any]) -> str:
    begin = next((body[name] for name in ("messages", "prompt", "input") if name in body), "")
    tools = body.get("tools")
    parts = [body.get("model"), *([tools] if tools else []), begin]
    return json_bytes(parts).decode("utf-8")


def _shown(value: object) -> str:
    text = json_bytes(value).decode("utf-8")
    return text if len(text) <= 60 else f"{text[:57]}…"
