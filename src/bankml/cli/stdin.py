"""What the commands read: a text, or a chat request."""

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
"""How a file's name says that stdin is meant."""

JSON_BEGINS = re.compile(rb"\s*[\[{]")
"""How a list of messages or a request begins. A text that begins so is not told from broken JSON: it is refused."""

MOST_BYTES = 16 << 20
"""Of a request, as on the wire, and of a text."""

_AT_ONCE = 1 << 20


def read_bytes(most: int = MOST_BYTES) -> bytes:
    """All of stdin. Whoever sits at a terminal is told that something is waited for.

    Raises FileProblem where it cannot be read, UsageError where it is longer than `most` bytes.
    """
    if sys.stdin.isatty():
        note("reading from the terminal; Ctrl-D ends the text")
    with suppress(OSError):
        os.set_blocking(sys.stdin.fileno(), True)  # or a text that comes slowly would end where it pauses
    try:
        return bounded(sys.stdin.buffer, "stdin", most)
    except OSError as error:
        raise problem("read", "stdin", error) from error


def bounded(file: BinaryIO, name: str, most: int) -> bytes:
    """All of `file`, which is buffered and blocks. Raises OSError, and UsageError, which calls it `name`, once there
    are more than `most` bytes."""
    raw = bytearray()
    while len(raw) <= most:
        wanted = min(_AT_ONCE, most + 1 - len(raw))
        part = file.read(wanted)
        raw += part
        if len(part) < wanted:  # the end; a terminal that is read again would wait for a second Ctrl-D
            return bytes(raw)
    raise UsageError(f"{name} is longer than {most} bytes, the most that are read")


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
        raise UsageError("there is nothing on stdin: a list of messages or a chat request is expected")
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
        try:
            return request_in(raw)
        except UsageError as error:
            raise UsageError(f"{error.message} (what begins with [ or {{ is read as JSON)") from error
    text = text_in(raw)
    if not text.strip():
        raise UsageError("there is nothing on stdin: a text, a list of messages or a chat request is expected")
    return {"messages": [{"role": "user", "content": text.removesuffix("\n").removesuffix("\r")}]}
