"""Input of the commands."""

import os
import sys
from contextlib import suppress
from typing import BinaryIO

from bankml.cli.output import note
from bankml.errors import UsageError
from bankml.files import problem

STDIN = "-"
"""The file name that means stdin."""

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
