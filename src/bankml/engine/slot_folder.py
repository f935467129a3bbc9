"""The folder of slot files: valid names, and atomic replacement.

A name is one that llama.cpp's `fs_validate_filename` accepts, so it cannot leave the folder. Symbolic links and special
files are neither read nor replaced.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import BinaryIO

from bankml.errors import FileProblem, UsageError
from bankml.files import problem

MAX_NAME_BYTES = 255
RESERVED = frozenset('/\\:*?"<>|')
LOOK_ALIKES = frozenset("\uff0e\u2215\u2216\ufffd\ufeff")
"""Full stop, slash and backslash of other scripts; the replacement character and the byte order mark."""

UNFINISHED = "..saving-"
"""Prefix of a file that is being written. No slot file's name can have two dots in a row."""


def is_slot_name(name: str) -> bool:
    """Whether `name` is valid for a slot file, by the rules of llama.cpp's `fs_validate_filename`."""
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        return False
    if not 0 < size <= MAX_NAME_BYTES:
        return False
    if name[0] == " " or name[-1] in " ." or ".." in name:
        return False
    return not any(c in RESERVED or c in LOOK_ALIKES or ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in name)


class SlotFolder:
    """The folder at `path`. Unfinished files of a killed server are removed.

    Raises UsageError if there is no such folder.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with self._opened(UsageError) as folder:
            self._remove_unfinished(folder)

    @contextmanager
    def reading(self, name: str) -> Iterator[BufferedReader]:
        """The regular file `name`. Raises FileNotFoundError if it is missing, FileProblem if it cannot be read."""
        with self._opened() as folder:
            try:
                # Without O_NONBLOCK opening a named pipe would block.
                found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise _not_plain(name, folder) or problem("read", name, error) from error
            if not stat.S_ISREG(os.fstat(found).st_mode):
                os.close(found)
                raise FileProblem(f"{name} is not a regular file")
            with os.fdopen(found, "rb") as file:
                yield file

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A file that is renamed to `name` when the block succeeds, and removed when it does not.

        At any moment, even of a power cut, `name` is the old or the complete new file. Readable by its owner only: it
        contains conversations. Raises FileProblem.
        """
        unfinished = UNFINISHED + secrets.token_hex(8)
        with self._opened() as folder:
            refusal = _not_plain(name, folder)
            if refusal is not None:
                raise refusal
            try:
                with _created(unfinished, folder) as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                    os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            except OSError as error:
                raise problem("write", name, error) from error

    @contextmanager
    def _opened(self, kind: type[UsageError] | type[FileProblem] = FileProblem) -> Iterator[int]:
        try:
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            name, reason = os.path.basename(os.path.normpath(self._path)), (error.strerror or str(error)).lower()
            raise kind(f"cannot open the folder of slot files {name!r}: {reason}") from error
        try:
            yield folder
        finally:
            os.close(folder)

    def _remove_unfinished(self, folder: int) -> None:
        for name in os.listdir(folder):
            if name.startswith(UNFINISHED):
                with suppress(OSError):
                    _remove_unlocked(name, folder)


def _not_plain(name: str, folder: int) -> FileProblem | None:
    """The error for what is at `name`, unless it is a regular file or nothing."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return None
    return FileProblem(f"{name} is {'a symbolic link' if stat.S_ISLNK(mode) else 'not a regular file'}")


@contextmanager
def _created(name: str, folder: int) -> Iterator[BinaryIO]:
    """The new file `name`, locked while it is written, so that no other server removes it as unfinished."""
    with os.fdopen(
        os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder), "wb"
    ) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise


def _remove_unlocked(name: str, folder: int) -> None:
    """Removes a file that nobody is writing. Raises OSError if it is locked."""
    found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(found)
