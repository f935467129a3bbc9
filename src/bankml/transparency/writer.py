"""Appends to a log. Entries that arrive while others are written to the disk wait, and are then written together (group
commit); an entry has its place before it is written, so that a receipt can name it."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from bankml.errors import FileProblem, LogUnavailable
from bankml.files import problem
from bankml.threads import start_thread
from bankml.transparency.note import LogCheckpoint, NoteSigner, signed
from bankml.transparency.opening import open_log
from bankml.transparency.pending import PendingBroken, header, record
from bankml.transparency.tiles import CHECKPOINT, MOST_ENTRY, WIDTH, TileName, bundle_of
from bankml.transparency.tree import leaf_hash

PUBLISH_EVERY = 1.0
"""Seconds after an entry within which a checkpoint has it."""

PROBE = 1 << 16
"""Bytes that must find room before a log that could not be written is written again: more than any entry."""


class LogSync(Enum):
    """When an entry is on the disk: before `append` returns, or within a second, which a crash of the machine may lose
    (the end of the process alone loses nothing)."""

    ALWAYS = "always"
    EVERY_SECOND = "every-second"


@dataclass(eq=False)
class _Append:
    """One entry on its way to the disk."""

    index: int
    entry: bytes
    done: bool = False
    failed: str | None = None


class LogWriter:
    """The one writer of the log in `path`, which is made if there is none. Any number of threads may append.

    `key` signs the checkpoints. Raises UsageError where another process writes the log, Refused for a log that is
    damaged or was written by another key, FileProblem.
    """

    def __init__(self, path: str, key: NoteSigner | None = None, sync: LogSync = LogSync.ALWAYS) -> None:
        opened = open_log(path, None if key is None else key.public)
        self.origin = opened.origin
        self._folder, self._lock_file = opened.folder, opened.lock
        self._edge, self._entries, self._pending = opened.edge, opened.entries, opened.pending
        self._key, self._sync = key, sync
        self._published: int | None = None
        self._lock = threading.Lock()  # of the queue
        self._committing = threading.Lock()  # of the files and the tree
        self._queue: list[_Append] = []
        self._next = self._edge.size
        self._failed: str | None = None
        self._broken = False
        self._dirty, self._closed = threading.Event(), threading.Event()
        try:
            self._publish()  # of a new log its name, which receipts are going to have
        except (OSError, FileProblem) as error:
            self._pending.close()
            os.close(self._lock_file)
            raise error if isinstance(error, FileProblem) else problem("write", path, error) from None
        self._publisher = start_thread(self._publish_often, "receipt log")

    @property
    def size(self) -> int:
        """Entries that are in the log."""
        return self._edge.size

    def append(self, entry_at: Callable[[int], bytes]) -> int:
        """Appends the entry that `entry_at` makes for its index, and returns the index. Raises LogUnavailable."""
        with self._lock:
            if self._broken:
                raise self._unavailable()
            entry = entry_at(self._next)
            if not 0 < len(entry) <= MOST_ENTRY:
                raise ValueError(f"an entry has 1 to {MOST_ENTRY} bytes, not {len(entry)}")
            mine = _Append(self._next, entry)
            self._queue.append(mine)
            self._next += 1
        with self._committing:
            if not mine.done:
                self._commit()
        if mine.failed is not None:
            raise self._unavailable(mine.failed)
        return mine.index

    def require_ready(self) -> None:
        """Raises LogUnavailable where the last entry could not be written, and there is still no room for another."""
        if self._failed is None:
            return
        with self._committing:
            if self._failed is not None and not self._broken:
                self._probe()
        if self._failed is not None:
            raise self._unavailable()

    def checkpoint(self) -> bytes:
        """The note about every entry so far. Raises LogUnavailable where it cannot be written."""
        with self._committing:
            try:
                self._publish()
            except (OSError, FileProblem, PendingBroken) as error:
                self._fail(error)
                raise self._unavailable() from None
        return self._folder.read(CHECKPOINT)

    def read(self, path: str) -> bytes:
        """A file of the log. Raises OSError, ValueError."""
        return self._folder.read(path)

    def close(self) -> None:
        """Publishes a last checkpoint. No append may follow."""
        self._closed.set()
        self._dirty.set()
        self._publisher.join()
        with self._committing:
            try:
                self._publish()
            except (OSError, FileProblem, PendingBroken) as error:
                self._fail(error)
            self._broken = True
            self._pending.close()
            os.close(self._lock_file)

    # ---- under `_committing`

    def _commit(self) -> None:
        """Writes what is in the queue. Where that fails, all that have not been written fail: their places are gone."""
        with self._lock:
            batch, self._queue = self._queue, []
        try:
            at = 0
            while at < len(batch):
                if self._edge.full:
                    self._seal()
                part = batch[at : at + WIDTH - len(self._entries)]
                self._write(part)
                at += len(part)
            self._failed = None
        except (OSError, FileProblem, PendingBroken) as error:
            self._fail(error)
            with self._lock:
                lost = [*(one for one in batch if not one.done), *self._queue]
                self._queue, self._next = [], self._edge.size
            for one in lost:
                one.done, one.failed = True, self._failed
        self._dirty.set()

    def _write(self, part: list[_Append]) -> None:
        leaves = [leaf_hash(one.entry) for one in part]
        self._pending.write(b"".join(record(one.entry, leaf) for one, leaf in zip(part, leaves, strict=True)))
        if self._sync is LogSync.ALWAYS:
            self._pending.sync()
        for one, leaf in zip(part, leaves, strict=True):
            self._edge.append(leaf)
            self._entries.append(one.entry)
            one.done = True

    def _seal(self) -> None:
        """Writes the full tiles and begins the next ones. May be repeated after a failure at any place."""
        self._pending.sync()
        bundle = TileName(None, self._edge.size // WIDTH - 1)
        completed = [(bundle, bundle_of(self._entries)), *self._edge.completed()]
        for name, data in completed:
            self._folder.write(name, data)
        self._pending = self._pending.begin_again(header(self._edge.size))
        self._edge.carry()
        self._entries = []
        for name, _ in completed:
            self._folder.drop_partials(name)

    def _publish(self) -> None:
        """Writes the checkpoint of the tree as it is, behind everything that it is about."""
        if self._published == self._edge.size or self._broken:
            return
        if self._edge.full:
            self._seal()
        self._pending.sync()
        size = self._edge.size
        for name, data in self._edge.partial():
            self._folder.write_partial(name, data)
        if self._entries:
            bundle = TileName(None, size // WIDTH, len(self._entries))
            self._folder.write_partial(bundle, bundle_of(self._entries))
        text = LogCheckpoint(self.origin, size, self._edge.root()).text
        self._folder.write_file(CHECKPOINT, signed(text, self.origin, self._key).encode("utf-8"))
        self._published = size

    def _probe(self) -> None:
        """Finds out whether the disk has room again."""
        try:
            self._folder.write_file("probe", b"\0" * PROBE)
            os.unlink(os.path.join(self._folder.path, "probe"))
            self._publish()
            self._failed = None
        except (OSError, FileProblem, PendingBroken) as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        cause = error.__cause__ if isinstance(error, FileProblem) else error  # without the path: clients read it
        self._failed = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
        self._broken = self._broken or isinstance(error, PendingBroken)

    # ----

    def _unavailable(self, why: str | None = None) -> LogUnavailable:
        reason = why or self._failed or "the log is closed"
        shown = reason[:1].lower() + reason[1:]
        return LogUnavailable(f"the receipt log cannot be written, so no answer is given: {shown}")

    def _publish_often(self) -> None:
        while self._dirty.wait() and not self._closed.wait(PUBLISH_EVERY):
            self._dirty.clear()
            with self._committing:
                try:
                    self._publish()
                except (OSError, FileProblem, PendingBroken) as error:
                    self._fail(error)
                    self._dirty.set()
