"""Input of the commands: a text, or a chat request."""

import codecs
import os
import re
import sys
from contextlib import suppress
from typing import BinaryIO

from bankml.cli.output import note
from bankml.errors import RequestError, UsageError
from bankml.files import problem

STDIN = "-"
"""The file name that means stdin."""

JSON_BEGINS = re.compile(rb"\s*[\[{]")
"""How a list of messages or a request begins. A text that begins so cannot be told from broken JSON: it is refused."""

MOST_BYTES = 16 << 20
"""Of a request, as over HTTP, and of a text."""

_AT_ONCE = 1 << 20


def read_bytes(most: int = MOST_BYTES) -> bytes:
    """All of stdin; a note on a terminal says that input is expected.

    Raises FileProblem if it cannot be read, UsageError if it is longer than `most` bytes.
    """
    if sys.stdin.isatty():
        note("reading from the terminal; Ctrl-D ends the text")
    with suppress(OSError):
        os.set_blocking(sys.stdin.fileno(), True)  # or a slow writer's pause would look like the end
    try:
        return bounded(sys.stdin.buffer, "stdin", most)
    except OSError as error:
        raise problem("read", "stdin", error) from error


def bounded(file: BinaryIO, name: str, most: int) -> bytes:
    """All of `file`, which is buffered and blocking. Raises OSError, and UsageError, which names it `name`, for more
    than `most` bytes."""
    raw = bytearray()
    while len(raw) <= most:
        size = min(_AT_ONCE, most + 1 - len(raw))
        part = file.read(size)
        raw += part
        if len(part) < size:  # the end; reading a terminal again would wait for a second Ctrl-D
            return bytes(raw)
    raise UsageError(f"{name} is longer than {most} bytes")


def text_in(raw: bytes) -> str:
    """Raises UsageError for what is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the text on stdin is not UTF-8 (byte {error.start})") from error


def request_in(raw: bytes) -> dict[str, object]:
    """A chat request: a JSON object, or a list of messages as its `messages`. Raises UsageError."""
    from bankml.api.reading.json_body import read_json

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
