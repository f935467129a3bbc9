"""The sha256 of a file whose bytes are read once."""

import hashlib
import os
from collections.abc import Callable
from typing import BinaryIO

from bankml.errors import ModelChanged
from bankml.files import open_regular, problem

CHUNK_BYTES = 1 << 20

Progress = Callable[[int], object]
"""Called with the number of bytes read since the last call."""


def sha256_file(path: str | os.PathLike[str], progress: Progress | None = None) -> str:
    """The sha256 of the regular file at `path`, as 64 lower-case hex digits. Raises FileProblem."""
    with open_regular(path) as file:
        return sha256_open(file, os.fspath(path), progress)


def sha256_open(file: BinaryIO, path: str, progress: Progress | None = None) -> str:
    """As `sha256_file`, of an open unbuffered file, from its first byte; `path` is for the message."""
    try:
        file.seek(0)
    except OSError as error:
        raise problem("read", path, error) from error
    return sha256_rest(file, path, b"", progress)


def sha256_rest(
    file: BinaryIO,
    path: str,
    prefix: bytes | bytearray,
    progress: Progress | None = None,
    memory: memoryview | None = None,
) -> str:
    """The sha256 of a file whose first bytes, `prefix`, have been read from the open unbuffered `file` already.

    The rest is read from the file's position to its end. `memory`, as long as the file was when it was opened, receives
    every byte that is hashed. Raises FileProblem, and ModelChanged when the file has another length than `memory`.

    Reads rather than maps the file: a mapping follows every later write to it, and a file that is cut short ends a
    process that maps it.
    """
    digest = hashlib.sha256(prefix)
    if memory is not None:
        memory[: len(prefix)] = prefix
    if progress is not None and prefix:
        progress(len(prefix))
    at = len(prefix)
    buffer = memoryview(bytearray(CHUNK_BYTES))
    try:
        while True:
            target = buffer if memory is None or at >= len(memory) else memory[at : at + CHUNK_BYTES]
            count = file.readinto(target)  # type: ignore[attr-defined]
            if not count:
                break
            digest.update(target[:count])
            at += count
            if progress is not None:
                progress(count)
    except OSError as error:
        raise problem("read", path, error) from error
    if memory is not None and at != len(memory):
        raise ModelChanged(f"{os.path.basename(path)} has {at} bytes and had {len(memory)} when it was opened: refused")
    return digest.hexdigest()
