"""What is known about a model file from its header and its hash, cached until the file changes."""

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
from bankml.library.supported import names_pooling, require_supported

MOST_REMEMBERED = 4096
"""How many files are cached."""

Key = TypeVar("Key")
Fact = TypeVar("Fact")


@dataclass(frozen=True)
class FileFacts:
    """What a file's header says. `reason` is why the model is unsupported; None if it is supported. `embeds`: the model
    was made for embeddings."""

    family: str = ""
    parameters: int = 0
    weights: str = ""
    reason: str | None = None
    embeds: bool = False


class FactsCache:
    """Cached facts of files. Thread-safe."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, FileIdentity], FileFacts] = {}
        self._mismatches: dict[tuple[str, FileIdentity, str], str] = {}
        self._guard = threading.Lock()

    def mismatched(self, source: PinnedFile, identity: FileIdentity, reason: str) -> None:
        """Records that the file of `source` does not match its pin. `identity` is its identity before it was hashed."""
        if source.path is not None:
            self._remember(self._mismatches, (source.path, identity, source.sha256), reason)

    def mismatch(self, source: PinnedFile) -> str | None:
        """Why the file of `source`, as it is now, does not match its pin; None if that is not known. Raises
        FileProblem."""
        if source.path is None:
            return None
        with self._guard:
            return self._mismatches.get((source.path, FileIdentity.of(source.path), source.sha256))

    def facts(self, source: PinnedFile) -> FileFacts:
        """`reason` says why a file cannot be read, is unsupported, or does not match its pin."""
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

    def _remember(self, table: dict[Key, Fact], key: Key, fact: Fact) -> None:
        with self._guard:
            while len(table) >= MOST_REMEMBERED:
                del table[next(iter(table))]
            table[key] = fact


def missing(source: PinnedFile) -> Refused:
    return FileMissing(f"{source.file} is pinned, but the file is missing")


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
    reason, embeds = None, False
    try:
        require_supported(header)
        embeds = names_pooling(header)
    except Refused as error:
        reason = error.message
    weights = max(counts, key=lambda name: counts[name], default="")
    return FileFacts(family if isinstance(family, str) else "", sum(counts.values()), weights, reason, embeds)


def written_at(source: PinnedFile) -> int:
    """When the file of `source` was last written, in nanoseconds since the epoch; 0 if it is missing."""
    try:
        return 0 if source.path is None else os.stat(source.path).st_mtime_ns
    except OSError:
        return 0


def made_at(reference: Reference) -> int:
    """When a derived model was made, or a file last written, in seconds since the epoch; 0 if that is not known."""
    if reference.derived is None:
        return written_at(reference.source) // 10**9
    try:
        return int(datetime.fromisoformat(reference.derived.created_at).timestamp())
    except (ValueError, OverflowError):
        return 0
