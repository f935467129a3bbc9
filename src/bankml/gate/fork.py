"""FORK.json: which files are pinned, and to which sha256.

`{"files": [{"path": NAME, "bytes": N, "sha256": HEX64}, ...], ...}`; every other key is free text. A file is looked up
by its base name. Two records that pin one name to different hashes pin nothing, since neither can be preferred.
`bytes` is informative; the sha256 alone decides. The file may be a symbolic link, one record shared by
several folders: reading and `record_pin` follow it. Messages about the file quote nothing of its content.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bankml.errors import PinMismatch, Refused
from bankml.files import atomic_write, open_regular, problem, unreadable

MAX_BYTES = 16 << 20
HEX64 = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Fork:
    """A parsed FORK.json; `path` is where it was read."""

    path: str
    document: dict[str, Any]

    @property
    def records(self) -> list[dict[str, Any]]:
        files: list[Any] = self.document.get("files", [])
        return [record for record in files if isinstance(record, dict)]

    def records_of(self, name: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record.get("path") == name]

    def pinned_sha256(self, name: str) -> str | None:
        """The sha256 (lower-case hex) of the first record of `name`; None without one or without 64 hex digits in it.

        `check_pin` refuses a name that other records pin to another sha256.
        """
        return next((_digest(record) for record in self.records_of(name)), None)

    def agrees(self, name: str) -> bool:
        """Whether every record of `name` pins it to the same sha256."""
        return len({_digest(record) for record in self.records_of(name)}) <= 1


def _digest(record: Mapping[str, Any]) -> str | None:
    digest = record.get("sha256")
    return digest.lower() if isinstance(digest, str) and HEX64.fullmatch(digest) else None


def read_fork(path: str | os.PathLike[str]) -> Fork:
    """Reads a FORK.json, once. Raises FileProblem when it is missing, unreadable or not a FORK.json."""
    with open_regular(path) as file:
        try:
            raw = file.read(MAX_BYTES + 1) or b""
            while 0 < len(raw) <= MAX_BYTES and (more := file.read(MAX_BYTES + 1 - len(raw))):
                raw += more
        except OSError as error:
            raise problem("read", path, error) from error
    if len(raw) > MAX_BYTES:
        raise unreadable(path, f"longer than {MAX_BYTES} bytes")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""  # other errors quote bytes of the file
        raise unreadable(path, f"not JSON{where}") from error
    if not isinstance(document, dict) or not isinstance(document.get("files", []), list):
        raise unreadable(path, "not an object with a list of files")
    return Fork(os.fspath(path), document)


def check_pin(fork: Fork, name: str, sha256: str | None = None) -> str:
    """The sha256 `name` is pinned to. Raises Refused where there is none, PinMismatch where `sha256` is another."""
    want = fork.pinned_sha256(name)
    if want is None:
        raise Refused(f"{name} has no sha256 record in FORK.json: unpinned, refused")
    if not fork.agrees(name):
        raise Refused(f"{name} has records in FORK.json that contradict each other: ambiguous, refused")
    if sha256 is not None and sha256 != want:
        raise PinMismatch(f"{name} sha256 {sha256} != pinned {want}: refused")
    return want


def record_pin(path: str | os.PathLike[str], name: str, nbytes: int, sha256: str, *, replace: bool) -> bool:
    """Writes the record of `name` into the FORK.json at `path`, created if missing; other keys and records are kept.

    A record that pins `name` to another sha256 is refused unless `replace`; of several, all are written. Writers
    exclude each other, and at any moment the file is the old one or the new one. A symbolic link is followed. Returns
    False when the record was already there. Raises Refused, FileProblem.
    """
    with _locked_folder(path):
        fork = read_fork(path) if os.path.lexists(path) else Fork(os.fspath(path), {})
        records = fork.records_of(name)
        others = [digest for record in records if (digest := _digest(record)) not in (None, sha256)]
        if others and not replace:
            raise Refused(
                f"{name} is already pinned to {others[0]}: give --sha256 {sha256} to replace that record, refused"
            )
        fields = {"path": name, "bytes": nbytes, "sha256": sha256}
        files: list[Any] = fork.document.setdefault("files", [])
        if records and all(record.get(key) == value for record in records for key, value in fields.items()):
            return False
        if not records:
            files.append(fields)
        for record in records:
            record.update(fields)
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
        with atomic_write(path, mode) as out:
            out.write((json.dumps(fork.document, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
    return True


@contextmanager
def _locked_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Holds an advisory lock on the folder of `path`: no lock file is needed."""
    try:
        descriptor = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise problem("write", path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
