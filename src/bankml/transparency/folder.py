"""A log as files in a folder: the layout of C2SP tlog-tiles, and beside it `pending` and `lock` of the writer.

Full tiles never change. `checkpoint` is replaced by a later one, and the partial tiles of its tree lie beside the full
ones, so that the folder can be read, copied or served as it is.
"""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from bankml.errors import UsageError
from bankml.files import atomic_write, problem
from bankml.transparency.tiles import CHECKPOINT, TileName, narrowed

PENDING, LOCK = "pending", "lock"


class LogFolder:
    """The files of one log."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.pending = os.path.join(path, PENDING)

    def read(self, path: str) -> bytes:
        """The file at a path of the log; a partial tile that has grown since is cut out of what it became. Raises
        OSError, ValueError for a file that is not what its path says."""
        file = os.path.join(self.path, path)
        try:
            return Path(file).read_bytes()
        except FileNotFoundError:
            name = TileName.of(path)
            wider = None if name is None else self._wider(name)
            if name is None or wider is None:
                raise
        return narrowed(Path(wider).read_bytes(), name)

    def checkpoint(self) -> str | None:
        """The note, None where there is none yet. Raises OSError, UnicodeDecodeError (a ValueError)."""
        try:
            return self.read(CHECKPOINT).decode("utf-8")
        except FileNotFoundError:
            return None

    def exists(self, name: TileName) -> bool:
        return os.path.exists(os.path.join(self.path, name.path))

    def write(self, name: TileName, data: bytes) -> None:
        """A full tile, on the disk when this returns. Raises FileProblem, OSError."""
        file = os.path.join(self.path, name.path)
        self._make_folders(os.path.dirname(file))
        with atomic_write(file) as out:
            out.write(data)

    def write_partial(self, name: TileName, data: bytes) -> None:
        """A partial tile, in place of the narrower ones before it. It is not synced: opening the log writes it anew."""
        file = Path(self.path, name.path)
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".new")
        temporary.write_bytes(data)
        temporary.replace(file)
        for other in file.parent.iterdir():
            if other != file:
                other.unlink()

    def drop_partials(self, name: TileName) -> None:
        """Removes the partial tiles that became the full tile `name`."""
        shutil.rmtree(os.path.join(self.path, f"{name.path}.p"), ignore_errors=True)

    def write_file(self, name: str, data: bytes) -> None:
        """Replaces a file of the folder; on the disk when this returns. Raises FileProblem."""
        with atomic_write(os.path.join(self.path, name)) as out:
            out.write(data)

    def lock(self) -> int:
        """The descriptor of a lock that ends with this process. Raises UsageError where another one holds it."""
        file = os.path.join(self.path, LOCK)
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise problem("write", file, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            by = f"another server (process {holder or 'unknown'})"
            raise UsageError(f"the log {self.path} is in use by {by}") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        return descriptor

    def _wider(self, name: TileName) -> str | None:
        """The file of a tile of which the partial tile `name` is the beginning."""
        full = TileName(name.level, name.index)
        if self.exists(full):
            return os.path.join(self.path, full.path)
        folder = os.path.join(self.path, f"{full.path}.p")
        with suppress(OSError):
            for found in os.listdir(folder):
                if found.isdigit() and int(found) >= name.width:
                    return os.path.join(folder, found)
        return None

    def _make_folders(self, path: str) -> None:
        """Makes the missing ones of the folders of `path`, each on the disk."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for one in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(one)
            descriptor = os.open(os.path.dirname(one), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
