"""The sha256 of a whole file, read once."""

import hashlib
import os
from collections.abc import Callable
from typing import BinaryIO

from bankml.files import problem
from bankml.gguf.header import open_regular

CHUNK_BYTES = 1 << 20

Progress = Callable[[int], object]  # told how many more bytes have been read


def sha256_file(path: str | os.PathLike[str], progress: Progress | None = None) -> str:
    """The sha256 of the regular file at `path`, as 64 lower-case hex digits. Raises FileProblem."""
    with open_regular(path) as file:
        return sha256_open(file, os.fspath(path), progress)


def sha256_open(file: BinaryIO, path: str, progress: Progress | None = None) -> str:
    """As `sha256_file`, of an open unbuffered file, from its first byte; `path` is for the message.

    Reads into one buffer rather than mapping the file: a file cut short meanwhile would end a process that maps it.
    """
    digest = hashlib.sha256()
    buffer = bytearray(CHUNK_BYTES)
    view = memoryview(buffer)
    try:
        file.seek(0)
        while count := file.readinto(buffer):  # type: ignore[attr-defined]
            digest.update(view[:count])
            if progress is not None:
                progress(count)
    except OSError as error:
        raise problem("read", path, error) from error
    return digest.hexdigest()
