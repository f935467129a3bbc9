"""What is known of a model's file by its header and its hash, remembered for as long as the file stays as it is."""

import os
import threading
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from bankml.errors import BankmlError, FileMissing, Refused
from bankml.gate.guard import guard
from bankml.gate.identity import FileIdentity
from bankml.gguf.header import Header
from bankml.library.reference import PinnedFile, Reference
from bankml.library.supported import require_supported

MOST_REMEMBERED = 4096
"""Files of which what is known is kept."""

Key = TypeVar("Key")
Word = TypeVar("Word")


@dataclass(frozen=True)
class FileFacts:
    """What a file's header says of it. `reason` is why it is not played; None: it is."""

    family: str = ""
    parameters: int = 0
    weights: str = ""
    reason: str | None = None


class FactsCache:
    """The facts of the files that were looked at. Safe to use from several threads."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, FileIdentity], FileFacts] = {}
        self._mismatches: dict[tuple[str, FileIdentity, str], str] = {}
        self._guard = threading.Lock()

    def mismatched(self, source: PinnedFile, identity: FileIdentity, reason: str) -> None:
        """The file of `source`, whose identity this was before it was hashed, is not the one its record pins."""
        if source.path is not None:
            self._remember(self._mismatches, (source.path, identity, source.sha256), reason)

    def mismatch(self, source: PinnedFile) -> str | None:
        """Why the file of `source`, as it is now, was found not to be the one its record pins; None where it was not.
        Raises FileProblem."""
        if source.path is None:
            return None
        with self._guard:
            return self._mismatches.get((source.path, FileIdentity.of(source.path), source.sha256))

    def facts(self, source: PinnedFile) -> FileFacts:
        """Of a file that cannot be read or played, or was found not to be what its record pins, `reason` says why."""
        if source.path is None:
            return FileFacts(reason=missing(source).message)
        try:
            key = source.path, FileIdentity.of(source.path)
            with self._guard:
                found = self._facts.get(key)
            if found is None:
                found = _facts(source.path)
                self._remember(self._facts, key, found)
            mismatch = self.mismatch(source)
            return found if mismatch is None else replace(found, reason=mismatch)
        except (BankmlError, OSError) as error:
            return FileFacts(
                reason=error.public_message if isinstance(error, BankmlError) else f"{source.file} cannot be read"
            )

    def _remember(self, table: dict[Key, Word], key: Key, word: Word) -> None:
        with self._guard:
            while len(table) >= MOST_REMEMBERED:
                del table[next(iter(table))]
            table[key] = word


def missing(source: PinnedFile) -> Refused:
    return FileMissing(f"{source.file} is pinned, but the file is not here")


def _facts(path: str) -> FileFacts:
    verdict = guard(path)
    if verdict.header is None:
        return FileFacts(reason=verdict.error().message)
    facts = facts_of(verdict.header)
    if verdict.kind == "play":
        return facts
    return FileFacts(facts.family, facts.parameters, facts.weights, verdict.error().message)


def facts_of(header: Header) -> FileFacts:
    family = header.metadata.get("general.architecture")
    counts: dict[str, int] = {}
    for tensor in header.tensors:
        counts[tensor.type.name] = counts.get(tensor.type.name, 0) + tensor.elements
    reason = None
    try:
        require_supported(header)
    except Refused as error:
        reason = error.message
    weights = max(counts, key=lambda name: counts[name], default="")
    return FileFacts(family if isinstance(family, str) else "", sum(counts.values()), weights, reason)


def written_at(source: PinnedFile) -> int:
    """When the file of `source` was last written, in nanoseconds since the epoch; 0 where it is not found."""
    try:
        return 0 if source.path is None else os.stat(source.path).st_mtime_ns
    except OSError:
        return 0


def made_at(reference: Reference) -> int:
    """When a derived model was made, or a file last written, in seconds since the epoch; 0 where it is not known."""
    if reference.derived is None:
        return written_at(reference.source) // 10**9
    try:
        return int(datetime.fromisoformat(reference.derived.created_at).timestamp())
    except (ValueError, OverflowError):
        return 0
