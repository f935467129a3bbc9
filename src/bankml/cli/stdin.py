"""What the commands read: a text, or a chat request."""

import codecs
import re
import sys

from bankml.cli.output import note
from bankml.errors import RequestError, UsageError
from bankml.files import problem

JSON_BEGINS = re.compile(rb'\s*(?:\[\s*[{\]]|\{\s*["}])')
"""How a list of messages or a request begins; text in brackets does not, and JSON that breaks off later does."""

MOST_BYTES = 16 << 20
"""Of a request, as on the wire."""


def read_bytes(most: int | None = None) -> bytes:
    """All of stdin. Whoever sits at a terminal is told that something is waited for.

    Raises FileProblem where it cannot be read, UsageError where it is longer than `most` bytes.
    """
    if sys.stdin.isatty():
        note("reading from the terminal; Ctrl-D ends the text")
    try:
        raw = sys.stdin.buffer.read(-1 if most is None else most + 1)
    except OSError as error:
        raise problem("read", "stdin", error) from error
    if most is not None and len(raw) > most:
        raise UsageError(f"stdin is longer than the {most} bytes that a request may have")
    return raw


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
    if raw.startswith(codecs.BOM_UTF8):
        raise UsageError("stdin begins with a byte order mark; send plain UTF-8 without one")
    if JSON_BEGINS.match(raw):
        return request_in(raw)
    text = text_in(raw)
    if not text.strip():
        raise UsageError("there is nothing on stdin: a text, a list of messages or a chat request is expected")
    return {"messages": [{"role": "user", "content": text.removesuffix("\n").removesuffix("\r")}]}
