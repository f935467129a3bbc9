"""The input of `bankml generate`: a text, a list of messages, or a chat request."""

import codecs
import json
import re
from collections.abc import Mapping
from typing import Any

from bankml.api.reading.json_body import read_json
from bankml.errors import RequestError, UsageError

JSON_BEGINS = re.compile(rb"\s*[\[{]")
"""How a list of messages or a request begins. A text that begins so cannot be told from broken JSON: it is refused."""


def text_in(raw: bytes) -> str:
    """Raises UsageError for what is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the text on stdin is not UTF-8 (byte {error.start})") from error


def request_in(raw: bytes) -> dict[str, object]:
    """A chat request: a JSON object, or a list of messages as its `messages`. Raises UsageError."""
    if not raw.strip():
        raise UsageError("stdin is empty: expected a list of messages or a chat request")
    try:
        document = read_json(raw)
    except RequestError as error:
        raise UsageError(f"stdin is neither a list of messages nor a chat request: {error.message}") from error
    if isinstance(document, list):
        return {"messages": document}
    if not isinstance(document, dict):
        raise UsageError("the JSON on stdin is neither a list of messages nor a chat request")
    return document


def request_or_text_in(raw: bytes) -> dict[str, object]:
    """As `request_in`; a text that does not begin like one becomes a user's message, without its last line end."""
    if raw.startswith(codecs.BOM_UTF8):
        raise UsageError("stdin begins with a byte order mark; send plain UTF-8 without one")
    if JSON_BEGINS.match(raw):
        try:
            return request_in(raw)
        except UsageError as error:
            raise UsageError(f"{error.message} (input that begins with [ or {{ is read as JSON)") from error
    text = text_in(raw)
    if not text.strip():
        raise UsageError("stdin is empty: expected a text, a list of messages or a chat request")
    return {"messages": [{"role": "user", "content": text.removesuffix("\n").removesuffix("\r")}]}


def body_with(raw: bytes, fields: Mapping[str, Any]) -> bytes:
    """The body of the request in `raw` with `fields` in place of its own; None takes one away. Raises UsageError."""
    body = {**request_or_text_in(raw), **fields}
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()
