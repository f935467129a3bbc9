"""verify: the guard on the header, then the pin on the bytes, of one file that is read once.

The header is parsed from the very bytes that are hashed, and where a model is to be opened those bytes are kept in
memory for it. The file's identity is compared before and after too: that is how a change is noticed, not the proof.
"""

import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from bankml.errors import FileProblem, ModelChanged, Refused, named
from bankml.files import open_regular
from bankml.gate.contents import FileContents
from bankml.gate.digest import Progress, sha256_file, sha256_open, sha256_rest
from bankml.gate.fork import check_pin, read_fork, record_pin
from bankml.gate.guard import Engine, Verdict, guard_open, require_model
from bankml.gate.identity import FileIdentity
from bankml.gguf.header import Header


@dataclass(frozen=True)
class Verified:
    """A model file that passed verification. No model is opened without one.

    `path` is canonical (absolute, no symbolic link in it), `sha256` 64 lower-case hex digits, `verified_at` seconds
    since the epoch. `header` was parsed from the bytes that have this sha256; `contents` are these bytes, where they
    were kept.
    """

    path: str
    sha256: str
    verdict: Verdict
    header: Header
    identity: FileIdentity
    fork_path: str
    verified_at: float
    contents: FileContents = field(default_factory=FileContents, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.verdict.name

    @property
    def unchanged(self) -> bool:
        """Whether `path` is still the file that was verified, by its identity."""
        try:
            self.check_unchanged()
        except ModelChanged:
            return False
        return True

    def check_unchanged(self) -> None:
        """Raises ModelChanged unless `path` is still the file that was verified, by its identity."""
        try:
            now = FileIdentity.of(self.path)
        except FileProblem as error:
            raise ModelChanged(f"{self.name} changed since it was verified: {error.public_message}") from error
        if now != self.identity:
            raise ModelChanged(f"{self.name} changed since it was verified")

    def rehash(self) -> None:
        """Hashes the file at `path` once more. Raises ModelChanged unless it has the verified sha256."""
        try:
            found = sha256_file(self.path)
        except FileProblem as error:
            raise ModelChanged(f"{self.name} changed since it was verified: {error.public_message}") from error
        if found != self.sha256:
            raise ModelChanged(f"{self.name} changed since it was verified: its sha256 is {found} now")


@dataclass(frozen=True)
class Pinned:
    """A file of any kind and the sha256 of its bytes, each read once."""

    name: str
    sha256: str
    identity: FileIdentity


def verify(
    path: str | os.PathLike[str],
    fork_path: str | os.PathLike[str],
    progress: Progress | None = None,
    engine: Engine = "mainline",
    name: str | None = None,
    require: Callable[[Header], object] | None = None,
    into: Callable[[Header], mmap.mmap] | None = None,
) -> Verified:
    """Guards the file at `path`, hashes it and compares the hash with its record in the FORK.json at `fork_path`.

    Its record is that of `name`, by default the path's base name. What can be refused without hashing is refused first:
    by the guard, for want of a record, and by `require`, which may raise Refused for a header that its caller has no
    use for. `into` is called next and gives the memory that the file is read into (`contents.memory_for`); without it
    no more than a buffer is used. Raises Refused (exit 2), Truncated (exit 3) or FileProblem (exit 1); ModelChanged
    when the file changed while it was read.
    """
    canonical = os.path.realpath(path)
    name = name or os.path.basename(path)
    fork = read_fork(fork_path)
    with open_regular(path) as file:
        before = FileIdentity.of(file.fileno())
        verdict = guard_open(file, name, engine)
        header = require_model(verdict)
        check_pin(fork, name)
        if require is not None:
            with named(name):
                require(header)
        memory = into(header) if into is not None else None
        sha256 = _hash_rest(file, os.fspath(path), header, memory, progress)
        _check_same(name, before, FileIdentity.of(file.fileno()), FileIdentity.of(canonical))
    check_pin(fork, name, sha256)
    found_at = os.path.realpath(fork_path)
    return Verified(canonical, sha256, verdict, header, before, found_at, time.time(), FileContents(memory))


def _hash_rest(file: BinaryIO, path: str, header: Header, memory: mmap.mmap | None, progress: Progress | None) -> str:
    """The sha256 of the bytes that `header` was parsed from and of all that follow."""
    if memory is None:
        return sha256_rest(file, path, header.prefix, progress)
    with memoryview(memory) as view:
        return sha256_rest(file, path, header.prefix, progress, view)


def pin(path: str | os.PathLike[str], fork_path: str | os.PathLike[str], progress: Progress | None = None) -> Pinned:
    """Hashes a file of any kind and compares the hash with its record. Raises Refused, FileProblem."""
    fork = read_fork(fork_path)
    with open_regular(path) as file:
        check_pin(fork, os.path.basename(path))
        found = _hash_open(file, path, progress)
    check_pin(fork, found.name, found.sha256)
    return found


def record(
    path: str | os.PathLike[str],
    fork_path: str | os.PathLike[str],
    expected: str | None = None,
    progress: Progress | None = None,
) -> Pinned:
    """Hashes a file and writes its record into the FORK.json at `fork_path`.

    With `expected` (64 lower-case hex digits) the file must hash to it, and an older record of another sha256 is
    replaced: the caller confirms the new one. Without it an older record that differs is refused. Raises Refused,
    FileProblem.
    """
    with open_regular(path) as file:
        found = _hash_open(file, path, progress)
    if expected is not None and found.sha256 != expected:
        raise Refused(f"{found.name} sha256 {found.sha256} != given {expected}: refused")
    record_pin(fork_path, found.name, found.identity.size, found.sha256, replace=expected is not None)
    return found


def _hash_open(file: BinaryIO, path: str | os.PathLike[str], progress: Progress | None) -> Pinned:
    name = os.path.basename(path)
    before = FileIdentity.of(file.fileno())
    sha256 = sha256_open(file, os.fspath(path), progress)
    _check_same(name, before, FileIdentity.of(file.fileno()), FileIdentity.of(path))
    return Pinned(name, sha256, before)


def _check_same(name: str, before: FileIdentity, *after: FileIdentity) -> None:
    if any(identity != before for identity in after):
        raise ModelChanged(f"{name} changed while it was hashed: refused")
