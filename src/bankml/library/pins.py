"""The pins in a folder's FORK.json files; a file is read again only when it has changed."""

import os
from dataclasses import dataclass

from bankml.errors import BankmlError, FileProblem
from bankml.files import problem
from bankml.gate.fork import Fork, read_fork
from bankml.gate.identity import FileIdentity
from bankml.library.names import quoted

FORK = "FORK.json"
GGUF = ".gguf"
LONGEST_NAME = 255  # bytes of a name in a file system


@dataclass(frozen=True)
class SkippedRecord:
    """A skipped entry of the folder: its file's name, and the reason, without a path."""

    file: str
    reason: str


@dataclass(frozen=True)
class PinRecord:
    """A record of a GGUF: the file's name, its sha256 (64 lower-case hex digits), and the FORK.json's path."""

    file: str
    sha256: str
    fork: str


class ForkFolder:
    """The FORK.json files of one folder. Thread-safe."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[FileIdentity, Fork]] = {}

    def fork(self, path: str) -> Fork:
        """The FORK.json at `path`, as it is now. Raises FileProblem."""
        identity = FileIdentity.of(path)
        known = self._read.get(path)
        if known is not None and known[0] == identity:
            return known[1]
        fork = read_fork(path)
        self._read[path] = (identity, fork)
        return fork

    def pins(self, folder: str) -> tuple[list[PinRecord], list[SkippedRecord]]:
        """Every pinned GGUF, ordered by the FORK.json's name and its position there, and the skipped entries.

        A missing folder has none. An unreadable FORK.json is skipped: one damaged file does not make other models
        unavailable.
        """
        pins: list[PinRecord] = []
        problems: list[SkippedRecord] = []
        for name in fork_names(folder):
            path = os.path.join(folder, name)
            try:
                found, odd = _records(self.fork(path))
            except BankmlError as error:
                problems.append(SkippedRecord(name, error.public_message))
                continue
            pins += found
            problems += [SkippedRecord(name, reason) for reason in odd]
        return pins, problems


def fork_names(folder: str) -> list[str]:
    """The names of the FORK.json files in `folder`, sorted. Raises FileProblem for a folder that cannot be listed."""
    return [name for name in listed(folder) if name == FORK or name.endswith("." + FORK)]


def listed(folder: str) -> list[str]:
    """The names in `folder` that are not hidden, sorted; none if it does not exist. Raises FileProblem."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise problem("list", folder, error) from error


def _records(fork: Fork) -> tuple[list[PinRecord], list[str]]:
    pins: dict[str, PinRecord] = {}
    odd: list[str] = []
    for i, record in enumerate(fork.records):
        file = record.get("path")
        if not isinstance(file, str) or not file.lower().endswith(GGUF) or file in pins:
            continue
        if file != os.path.basename(file) or not file.isprintable() or len(os.fsencode(file)) > LONGEST_NAME:
            odd.append(f"its record {i} has a path that is not a file name")
            continue
        sha256 = fork.pinned_sha256(file)
        if sha256 is None:
            odd.append(f"its record of {quoted(file)} has no sha256 of 64 hex digits")
        elif not fork.agrees(file):
            odd.append(f"its records of {quoted(file)} contradict each other")
        else:
            pins[file] = PinRecord(file, sha256, fork.path)
    return list(pins.values()), odd


def folder_problem(folder: str, error: FileProblem) -> SkippedRecord:
    return SkippedRecord(os.path.basename(folder.rstrip("/")) or folder, error.public_message)
