"""The bytes of a verified file, in private memory: the bytes that were hashed are the bytes that are computed with.

A file's times and inode do not prove that its bytes stayed the same: a process that mapped the file and dirtied a page
before it was hashed can store to that page afterwards, and no time changes. So a model's bytes are hashed while they
are read into the memory that the weights use, and the file is not read again.
"""

import mmap
from typing import TYPE_CHECKING

from bankml.errors import FileProblem, ModelChanged
from bankml.files import open_regular
from bankml.gate.digest import sha256_rest
from bankml.gate.identity import FileIdentity
from bankml.gguf.header import Header
from bankml.pages import private_pages

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


def memory_for(header: Header) -> mmap.mmap:
    """Private memory for the file of `header`. Raises MemoryError."""
    return private_pages(header.file_size)


class FileContents:
    """The bytes that `verify` hashed, until the model takes them; the record of a verified file outlives its model."""

    def __init__(self, memory: mmap.mmap | None = None) -> None:
        self._memory = memory

    def take(self) -> mmap.mmap | None:
        """The file's bytes the first time, then None; None too where `verify` kept none."""
        memory, self._memory = self._memory, None
        return memory


def take_contents(verified: "Verified") -> mmap.mmap:
    """The bytes whose sha256 is `verified.sha256`: those that `verify` kept, else read and hashed now.

    Raises ModelChanged when the file is no longer the one that was verified, MemoryError.
    """
    return verified.contents.take() or _read_again(verified)


def _read_again(verified: "Verified") -> mmap.mmap:
    memory = memory_for(verified.header)
    try:
        with open_regular(verified.path) as file:
            same = FileIdentity.of(file.fileno()) == verified.identity
            with memoryview(memory) as view:
                same = same and sha256_rest(file, verified.path, b"", memory=view) == verified.sha256
            same = same and FileIdentity.of(file.fileno()) == verified.identity
    except FileProblem as error:
        raise ModelChanged(f"{verified.name} changed since it was verified: {error.public_message}") from error
    if not same:
        raise ModelChanged(f"{verified.name} changed since it was verified")
    return memory
