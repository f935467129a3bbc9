"""The bytes of a verified file, in private memory: the bytes that were hashed are the bytes that are computed with.

A file's times and inode do not prove that its bytes stayed the same: a process that mapped the file and dirtied a page
before it was hashed can store to that page afterwards, and no time changes. So a model's bytes are hashed while they
are read into the memory that the weights use, and the file is not read again.
"""

import mmap

from bankml.gguf.header import Header
from bankml.pages import private_pages


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
