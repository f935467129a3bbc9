"""Identifies a file without reading it: device, inode, size, and the times of its last change (mtime, ctime).

A program cannot set back the inode's time (ctime) after it has written to the file. A store through a shared mapping
need not change any time, so an identity is a notice, not a proof (gate.contents).
"""

import os
from dataclasses import dataclass

from bankml.files import problem


@dataclass(frozen=True)
class FileIdentity:
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, file: str | os.PathLike[str] | int) -> "FileIdentity":
        """The identity of a path (symbolic links followed) or of an open descriptor. Raises FileProblem."""
        try:
            found = os.stat(file)
        except OSError as error:
            raise problem("read", "the file" if isinstance(file, int) else file, error) from error
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
