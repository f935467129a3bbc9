"""The digest of a batch: one Merkle root (RFC 9162) over custom id, hash of the request and hash of the response of
every line, in the input's order."""

from __future__ import annotations

from dataclasses import dataclass

from bankml.batch.entry import Entry
from bankml.transparency.edge import RightEdge
from bankml.transparency.note import LogCheckpoint, NoteSigner, NoteVerifier, signed, verify
from bankml.transparency.tree import leaf_hash

ORIGIN = "bankml-batch/"
"""What the origin of a digest's checkpoint begins with; the model's sha256 follows."""

NO_MODEL = "none"


class BatchDigest:
    """Grows by one entry a line; it holds a few hundred hashes at most."""

    def __init__(self) -> None:
        self._edge = RightEdge(0, [[]])
        self._models: set[str] = set()
        self.errors = 0

    @property
    def size(self) -> int:
        return self._edge.size

    @property
    def models(self) -> list[str]:
        """The sha256 of every model that answered, sorted."""
        return sorted(self._models)

    def add(self, entry: Entry) -> None:
        """The entry of the next line."""
        self._edge.append(leaf_hash(entry.leaf))
        if self._edge.full:
            self._edge.carry()
        if entry.computation is not None:
            self._models.add(entry.computation.model_sha256)
        self.errors += entry.failed

    @property
    def checkpoint(self) -> LogCheckpoint:
        """What is signed: the models, the number of lines and the root."""
        return LogCheckpoint(ORIGIN + (",".join(self.models) or NO_MODEL), self.size, self.root)

    @property
    def root(self) -> bytes:
        return self._edge.root()

    def to_json(self, input_sha256: str, key: NoteSigner | None) -> dict[str, object]:
        """The content of the file beside the output. The note is signed where there is a key."""
        checkpoint = self.checkpoint
        return {
            "batch": 1,
            "lines": self.size,
            "errors": self.errors,
            "models": self.models,
            "input_sha256": input_sha256,
            "root": self.root.hex(),
            "checkpoint": signed(checkpoint.text, checkpoint.origin, key),
        }


@dataclass(frozen=True)
class DigestFile:
    """A digest's file as it was read."""

    root: str
    checkpoint: str

    @classmethod
    def of(cls, value: object) -> DigestFile:
        """Raises ValueError, with the rest of a sentence."""
        if not isinstance(value, dict) or value.get("batch") != 1:
            raise ValueError("it is not the digest of a batch, version 1")
        root, checkpoint = value.get("root"), value.get("checkpoint")
        if not isinstance(root, str) or not isinstance(checkpoint, str):
            raise ValueError("it has no root or no checkpoint")
        return cls(root, checkpoint)

    def require(self, digest: BatchDigest, key: NoteVerifier | None) -> None:
        """Raises ValueError, with the rest of a sentence, unless it is that of `digest`, signed by `key` if given."""
        found, expected = LogCheckpoint.of(self.checkpoint), digest.checkpoint
        if self.root != expected.root.hex() or found != expected:
            raise ValueError(f"its root is {self.root}, that of the output is {expected.root.hex()}")
        if key is not None:
            verify(self.checkpoint, expected.origin, key)
