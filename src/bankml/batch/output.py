"""The output of a batch: lines in the input's order, and beside it a journal of those that were computed ahead.

A process may be killed at any moment. Both files only grow; a last line without its end is cut when the next run opens
them, and every line names the input's line that it belongs to. So nothing that was written is computed again, and
nothing is lost or doubled.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from bankml.batch.entry import Entry, read_entry
from bankml.batch.request import InputLine
from bankml.errors import Refused, UsageError
from bankml.files import problem

JOURNAL = ".part"
DIGEST = ".digest.json"
"""Suffixes of the files beside the output."""

SYNC_S = 1.0
"""Seconds between two writes to the disk: a failing machine loses so much, a killed process nothing."""

JOURNAL_BYTES = 4 << 20
"""A journal of more bytes whose lines are all in the output is emptied."""


@contextmanager
def locked_output(path: str) -> Iterator[BatchOutput]:
    """The output at `path`, created if it is missing, which no other process writes meanwhile. Raises FileProblem,
    Refused where another one does."""
    if os.path.lexists(path) and not os.path.isfile(path):
        raise UsageError(f"{path} is not a regular file")
    try:
        with _opened(path) as file, _opened(path + JOURNAL) as journal:
            output = BatchOutput(path, file, journal)
            yield output
            output.sync()
    except OSError as error:
        raise problem("write", path, error) from error


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b") as file:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another process writes {path}: wait for its end, or give another output") from None
        yield file


class BatchOutput:
    """An output that this process has locked. `entries` come first, then `write` for each line that is missing."""

    def __init__(self, path: str, file: BinaryIO, journal: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._journal = journal
        self._synced = time.monotonic()

    def entries(self, lines: Iterator[InputLine]) -> Iterator[Entry]:
        """The entries of the lines that are there, each of which belongs to the next of `lines`. Raises Refused for a
        file that is not the output of this input."""
        self._file.seek(0)
        end = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            entry = self._entry(line, number)
            source = next(lines, None)
            if source is None or source.id != entry.id:
                raise Refused(f"{self.path} is not the output of this input: its line {number} belongs to another line")
            end += len(line)
            yield entry
        self._file.seek(end)
        self._file.truncate()

    def _entry(self, line: bytes, number: int) -> Entry:
        try:
            return read_entry(line[:-1])
        except Refused as error:
            raise Refused(f"line {number} of {self.path} {error.message}: give another output") from None

    def ahead(self) -> dict[str, bytes]:
        """The lines of the journal by their ids: of requests that were answered before those of earlier lines."""
        found: dict[str, bytes] = {}
        self._journal.seek(0)
        end = 0
        for line in self._journal:
            if not line.endswith(b"\n"):
                break
            try:
                found[read_entry(line[:-1]).id] = line[:-1]
            except Refused:
                break
            end += len(line)
        self._journal.seek(end)
        self._journal.truncate()
        return found

    def write(self, line: bytes) -> None:
        """Appends the next line. Raises OSError."""
        self._file.write(line + b"\n")
        self._file.flush()
        if time.monotonic() - self._synced >= SYNC_S:
            self.sync()

    def keep(self, line: bytes) -> None:
        """Appends a line to the journal, whose turn in the output has not come. Raises OSError."""
        self._journal.write(line + b"\n")
        self._journal.flush()

    def none_ahead(self) -> None:
        """Every line of the journal is in the output."""
        if self._journal.tell() > JOURNAL_BYTES:
            self._empty_journal()

    def complete(self) -> None:
        """Every line of the input has its line: the journal is not needed any more. Raises OSError."""
        self._empty_journal()
        os.unlink(self.path + JOURNAL)

    def sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def _empty_journal(self) -> None:
        self.sync()  # before the journal loses them, the lines are on the disk
        self._journal.seek(0)
        self._journal.truncate()
