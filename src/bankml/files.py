"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from bankml.errors import FileProblem


def problem(action: str, path: str | os.PathLike[str], error: OSError) -> FileProblem:
    """The sentence for a failed system call: `cannot read model.gguf: permission denied`."""
    name = os.fspath(path) or "''"
    reason = error.strerror or str(error)
    return FileProblem(f"cannot {action} {name}: {reason[:1].lower()}{reason[1:]}")


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int = 0o644) -> Iterator[BinaryIO]:
    """A binary file that takes the name `path` when the block ends well, and leaves nothing behind when it does not.

    Written under a temporary name in the same folder, flushed to the disk, then renamed: at any moment `path` is the
    old file or the whole new one. A symbolic link is written through. Raises FileProblem where the system refuses.
    """
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name[:100]}.{os.urandom(8).hex()}.part"
    try:  # around its making too: a signal may come in between
        try:
            with open(temporary, "xb", opener=partial(os.open, mode=0o600)) as out:
                yield out
                out.flush()
                os.fchmod(out.fileno(), mode)
                os.fsync(out.fileno())
            os.replace(temporary, target)
        except OSError as error:
            raise problem("write", path, error) from error
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Makes a rename durable; a file system that cannot sync a folder has nothing more to offer."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
