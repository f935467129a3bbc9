"""Reads a batch's input a line at a time; the file is never in memory as a whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO, cast

from bankml.batch.request import MOST_LINE, InputLine
from bankml.files import open_regular, problem

_AT_ONCE = 1 << 20


def lines_of(path: str) -> Iterator[InputLine]:
    """The lines of the file that have more than white space, in order. Raises FileProblem."""
    with open_regular(path) as raw, io.BufferedReader(cast(io.RawIOBase, raw), _AT_ONCE) as file:
        number = 0
        try:
            while part := file.readline(MOST_LINE + 1):
                number += 1
                line, too_long = part.removesuffix(b"\n").removesuffix(b"\r"), len(line_end(part)) == 0
                too_long = too_long and _skip_rest(cast(BinaryIO, file))
                if too_long or (not line.isspace() and line):
                    yield InputLine(number, line, too_long)
        except OSError as error:
            raise problem("read", path, error) from error


def line_end(part: bytes) -> bytes:
    return part[-1:] if part.endswith(b"\n") else b""


def _skip_rest(file: BinaryIO) -> bool:
    """Reads on to the end of the line. Whether there was more of it than its end."""
    more = False
    while part := file.readline(_AT_ONCE):
        more = more or part != b"\n"
        if part.endswith(b"\n"):
            break
    return more


def count(path: str) -> int:
    """How many lines have more than white space. Raises FileProblem."""
    return sum(1 for _ in lines_of(path))


def sha256_of(path: str) -> str:
    """The sha256 of the file, 64 hex digits. Raises FileProblem."""
    hashed = sha256()
    with open_regular(path) as file:
        try:
            while part := file.read(_AT_ONCE):
                hashed.update(part)
        except OSError as error:
            raise problem("read", path, error) from error
    return hashed.hexdigest()
