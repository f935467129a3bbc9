"""Opens files that users name, and writes files atomically.

A file being written has a temporary name and is locked by its writer. That distinguishes it from what a killed process
left behind, which the next writer of the same file removes.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bankml.errors import FileProblem


def problem(action: str, path: str | os.PathLike[str], error: OSError) -> FileProblem:
    """The sentence for a failed system call: `cannot read model.gguf: permission denied`."""
    name = os.fspath(path) or "''"
    reason = error.strerror or str(error)
    return FileProblem(f"cannot {action} {name}: {reason[:1].lower()}{reason[1:]}", name)


def unreadable(path: str | os.PathLike[str], why: str) -> FileProblem:
    """The same for a file with the wrong content: `cannot read x.json: not JSON`."""
    return FileProblem(f"cannot read {os.fspath(path)}: {why}", os.fspath(path))


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Opens a regular file for reading, unbuffered: the one way to open a file that a user names. Never blocks on a
    FIFO. Without `follow` a symbolic link is refused. Raises FileProblem."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError):
            raise FileProblem(f"cannot read {os.fspath(path)!r}: not a file name") from error
        if not follow and error.errno == errno.ELOOP and os.path.islink(path):
            raise unreadable(path, "a symbolic link") from error
        raise problem("read", path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise unreadable(path, "not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: int = 0o644, *, follow: bool = True) -> Iterator[BinaryIO]:
    """A binary file that gets the name `path` when the block succeeds, and leaves nothing behind when it fails.

    Written under a temporary name in the same folder, synced to the disk, then renamed: at any moment `path` is the old
    file or the complete new one. A symbolic link is followed; without `follow` it is replaced and its target kept.
    Raises FileProblem.
    """
    target = Path(os.path.realpath(path) if follow else path)
    temporary = target.parent / f".{target.name[:100]}.{_random()}.part"
    _sweep(target.parent, re.escape(f".{target.name[:100]}.") + RANDOM + r"\.part", 0, os.unlink)
    try:  # includes the creation: a signal may arrive right after it
        try:
            with _created(temporary) as out:
                yield out
                out.flush()
                os.fchmod(out.fileno(), mode)
                os.fsync(out.fileno())
                os.replace(temporary, target)  # while it is locked
        except OSError as error:
            raise problem("write", path, error) from error
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


@contextmanager
def temporary_directory(folder: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `folder`, named `prefix` and sixteen hex digits, removed with its content when the block ends.

    Other folders with this prefix that no process has locked are left-overs and are removed. Raises OSError.
    """
    import shutil  # it imports the compression modules, which no other command needs

    _sweep(folder, re.escape(prefix) + RANDOM, os.O_DIRECTORY, shutil.rmtree)
    made = folder / f"{prefix}{_random()}"
    try:
        descriptor = _created_folder(made)
        try:
            yield made
        finally:
            os.close(descriptor)
    finally:
        shutil.rmtree(made, ignore_errors=True)


RANDOM = "[0-9a-f]{16}"


def _random() -> str:
    return os.urandom(8).hex()


def _created(path: Path) -> BinaryIO:
    """A new file, locked by this process."""
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if _locked(descriptor):
            return os.fdopen(descriptor, "wb")
        os.close(descriptor)


def _created_folder(path: Path) -> int:
    """A new folder, locked through the descriptor that is returned."""
    while True:
        path.mkdir(0o700)
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            if _locked(descriptor):
                return descriptor
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Locks what was just created. False when another process, finding it not locked yet, has removed it."""
    with suppress(OSError):  # on a file system without locks nothing is removed either
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def _sweep(folder: Path, pattern: str, flags: int, remove: Callable[[Path], object]) -> None:
    """Removes what killed processes left in `folder` under names like `pattern`; what is locked is in use."""
    with suppress(OSError):
        for name in filter(re.compile(pattern).fullmatch, os.listdir(folder)):
            with suppress(OSError):
                found = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags)
                try:
                    fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove(folder / name)
                finally:
                    os.close(found)


def _sync_folder(folder: Path) -> None:
    """Makes a rename durable, where the file system can sync a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
