"""What the commands read: a text, or a chat request."""

import re
import sys

from bankml.errors import RequestError, UsageError

JSON_BEGINS = re.compile(rb'\s*(?:\[\s*[{\]]|\{\s*["}])')
"""How a list of messages or a request begins; text in brackets does not, and JSON that breaks off later does."""


def read_bytes() -> bytes:
    """All of stdin. Whoever sits at a terminal is told that something is waited for."""
    if sys.stdin.isatty():
        from bankml.cli.output import note

        note("reading from the terminal; Ctrl-D ends the text")
    return sys.stdin.buffer.read()


def text_in(raw: bytes) -> str:
    """Raises UsageError for what is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the text on stdin is not UTF-8 (byte {error.start})") from error


def request_in(raw: bytes) -> dict[str, object]:
    """A chat request: a JSON object, or a list of messages as its `messages`. Raises UsageError."""
    from bankml.api.json_in import read_json

    try:
        document = read_json(raw)
    except RequestError as error:
        raise UsageError(f"stdin is no list of messages and no chat request: {error.message}") from error
    if isinstance(document, list):
        return {"messages": document}
    if not isinstance(document, dict):
        raise UsageError("the JSON on stdin is neither a list of messages nor a chat request")
    return document


def request_or_text_in(raw: bytes) -> dict[str, object]:
    """As `request_in`; what does not begin like one is the text of a user's message, without its last line end."""
    if JSON_BEGINS.match(raw):
        return request_in(raw)
    text = text_in(raw)
    if not text.strip():
        raise UsageError("there is nothing on stdin: a text, a list of messages or a chat request is expected")
    return {"messages": [{"role": "user", "content": text.removesuffix("\n").removesuffix("\r")}]}
