"""The entries that are not in a full tile yet, in one file that is appended to.

    bankml-log 1 FIRST\\n          FIRST is the index of the first entry, a multiple of 256
    LENGTH HASH ENTRY             LENGTH: uint32, big-endian; HASH: the leaf's, which shows that the record is complete
    …

A write that was interrupted leaves the beginning of a record at the end, which is cut off when the file is opened.
"""

import os
import re
from dataclasses import dataclass, field

from bankml.errors import Refused
from bankml.files import atomic_write
from bankml.transparency.tiles import MOST_ENTRY, WIDTH
from bankml.transparency.tree import HASH, leaf_hash

_HEADER = re.compile(rb"bankml-log 1 (0|[1-9][0-9]{0,17})\n")
_LENGTH = 4


def header(first: int) -> bytes:
    return b"bankml-log 1 %d\n" % first


def record(entry: bytes, leaf: bytes) -> bytes:
    return len(entry).to_bytes(_LENGTH, "big") + leaf + entry


@dataclass
class PendingEntries:
    """What a file has: the entries from `first` on, their hashes, and the bytes that are valid."""

    first: int
    entries: list[bytes] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)
    valid: int = 0


def parse(data: bytes, path: str) -> PendingEntries:
    """The longest valid beginning of a file. Raises Refused where more than an interrupted write is wrong: a broken
    header, or a wrong record with a valid one behind it."""
    found = _HEADER.match(data)
    if found is None or int(found[1]) % WIDTH:
        raise Refused(f"{path} is damaged: it has no header of a receipt log")
    pending = PendingEntries(int(found[1]), valid=found.end())
    while len(pending.entries) < WIDTH:
        entry, leaf, end = _record_at(data, pending.valid)
        if entry is None or leaf_hash(entry) != leaf:
            if entry is not None and _is_valid(data, end):
                number = pending.first + len(pending.entries)
                raise Refused(f"{path} is damaged: entry {number} is not what was written")
            return pending
        pending.entries.append(entry)
        pending.leaves.append(leaf)
        pending.valid = end
    return pending


def _record_at(data: bytes, at: int) -> tuple[bytes | None, bytes, int]:
    """Entry, hash and end of the record at `at`; no entry where it is cut off or is none."""
    begin = at + _LENGTH + HASH
    length = int.from_bytes(data[at : at + _LENGTH], "big")
    end = begin + length
    if begin > len(data) or end > len(data) or not 0 < length <= MOST_ENTRY:
        return None, b"", end
    return data[begin:end], data[at + _LENGTH : begin], end


def _is_valid(data: bytes, at: int) -> bool:
    entry, leaf, _ = _record_at(data, at)
    return entry is not None and leaf_hash(entry) == leaf


class PendingFile:
    """The file, open for appending; `size` are the bytes of it that count."""

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self.size = size
        os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)
        self.unsynced = False

    def write(self, data: bytes) -> None:
        """Appends `data`, or nothing. Raises OSError; PendingBroken where a part of it could not be taken back."""
        done = 0
        try:
            while done < len(data):
                done += os.pwrite(self._descriptor, data[done:], self.size + done)
        except OSError:
            try:
                os.ftruncate(self._descriptor, self.size)
            except OSError as error:
                raise PendingBroken(error) from error
            raise
        self.size += len(data)
        self.unsynced = True

    def sync(self) -> None:
        """Raises PendingBroken: after a failed fsync nobody knows what is on the disk."""
        if not self.unsynced:
            return
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise PendingBroken(error) from error
        self.unsynced = False

    def begin_again(self, data: bytes) -> "PendingFile":
        """The file that has taken the place of this one, and has `data`. Raises PendingBroken, FileProblem."""
        with atomic_write(self._path) as out:
            out.write(data)
        try:
            made = PendingFile(self._path, len(data))
        except OSError as error:
            raise PendingBroken(error) from error
        self.close()
        return made

    def close(self) -> None:
        os.close(self._descriptor)


class PendingBroken(Exception):
    """What the file has is not known any more until it is opened anew."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"{error.strerror or error}; start the server again")
