"""The folder of slot files: which names are allowed, atomic writing, and the secret that slot files are keyed with.

A name is one that llama.cpp's `fs_validate_filename` accepts, so it cannot leave the folder. Only regular files are
read or replaced, no symbolic links. The secret, 32 random bytes, is created with the first use of the folder, readable
by its owner alone: who can read it can write slot files that are accepted.
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
"""The beginning of the name of a file that is being written. No slot file's name may have two dots in a row."""

SECRET = "..secret"
SECRET_BYTES = 32
CREATE_ATTEMPTS = 10


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


class NotPlainFile(FileProblem):
    """The name is taken by something that is not a regular file."""


class SlotFolder:
    """The folder at `path`. Unfinished files of a killed server are removed.

    With `trust` slot files of other servers are accepted. Raises UsageError when there is no such folder.
    """

    def __init__(self, path: str, trust: bool = False) -> None:
        self._path = path
        with self._opened(UsageError) as folder:
            self._remove_unfinished(folder)
        self._trust = trust

    def writing_key(self) -> bytes:
        """The secret that slot files are written with, created if missing. Raises FileProblem."""
        with self._opened() as folder:
            return _secret(folder)

    def reading_key(self) -> bytes | None:
        """The secret that a slot file must have been written with; None with `trust`. Raises FileProblem."""
        return None if self._trust else self.writing_key()

    @contextmanager
    def reading(self, name: str) -> Iterator[BufferedReader]:
        """The regular file `name`. Raises FileNotFoundError, FileProblem for what cannot be read."""
        with self._opened() as folder:
            try:
                # Without O_NONBLOCK a FIFO would block the server.
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
        """A file that gets the name `name` when the block succeeds, and leaves nothing behind when it fails.

        At any moment, also after a power failure, `name` is the old file or the complete new one. Readable by its owner
        alone, since it contains a conversation. Raises FileProblem.
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
    """The error about what is at `name`, unless it is a regular file or nothing."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return None
    return NotPlainFile(f"{name} is {'a symbolic link' if stat.S_ISLNK(mode) else 'not a regular file'}")


def _secret(folder: int) -> bytes:
    try:
        for _ in range(CREATE_ATTEMPTS):
            with suppress(FileNotFoundError):
                return _read_secret(folder)
            with suppress(FileNotFoundError):  # another server took the unfinished file for a left-over
                _create_secret(folder)
        return _read_secret(folder)
    except OSError as error:
        raise FileProblem(f"cannot read the secret of the slot folder: {(error.strerror or '').lower()}") from error


def _read_secret(folder: int) -> bytes:
    found = os.open(SECRET, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(found, "rb") as file:
        status = os.fstat(file.fileno())
        secret = file.read(SECRET_BYTES + 1) if stat.S_ISREG(status.st_mode) else b""
    if len(secret) != SECRET_BYTES or status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise FileProblem(f"the secret {SECRET} must be a file of {SECRET_BYTES} bytes that only its owner can read")
    return secret


def _create_secret(folder: int) -> None:
    """Of two servers that create it at once, the first one's is kept."""
    unfinished = UNFINISHED + secrets.token_hex(8)
    with _created(unfinished, folder) as file:
        file.write(secrets.token_bytes(SECRET_BYTES))
        file.flush()
        os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(unfinished, SECRET, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(unfinished, dir_fd=folder)
    os.fsync(folder)


@contextmanager
def _created(name: str, folder: int) -> Iterator[BinaryIO]:
    """The new file `name`, locked while it is written, so that no other server takes it for a left-over."""
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
    """Removes a file that is not being written. Raises OSError when it is locked by its writer."""
    found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(found)
