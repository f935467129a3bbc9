"""Reads a log by its checkpoint and tiles, from a folder or over HTTP: proofs, consistency, and all of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from bankml.errors import FileProblem, Refused
from bankml.transparency.edge import RightEdge
from bankml.transparency.note import LogCheckpoint, NoteVerifier, verify
from bankml.transparency.proof import InclusionProof
from bankml.transparency.tiles import (
    CHECKPOINT,
    HEIGHT,
    WIDTH,
    ReadFile,
    TileNodes,
    entries_in,
    hashes_in,
    name_at,
)
from bankml.transparency.tree import (
    consistency_proof,
    inclusion_proof,
    inclusion_root,
    is_consistent,
    leaf_hash,
)


@dataclass(frozen=True)
class LogReader:
    """The log named `name` in messages, whose files `read` gives; `key` signs its checkpoints, None: unsigned ones are
    accepted."""

    name: str
    read: ReadFile
    key: NoteVerifier | None = None

    def checkpoint(self) -> tuple[LogCheckpoint, str]:
        """The last checkpoint, and its note. Raises Refused, FileProblem."""
        try:
            note = self.read(CHECKPOINT).decode("utf-8")
        except OSError as error:
            raise FileProblem(f"cannot read the checkpoint of {self.name}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise Refused(f"the checkpoint of {self.name} is refused: it is not UTF-8") from None
        return self.checked(note, f"the checkpoint of {self.name}"), note

    def checked(self, note: str, what: str) -> LogCheckpoint:
        """The checkpoint that a note has. Raises Refused unless the key signed it."""
        try:
            checkpoint = LogCheckpoint.of(note)
            if self.key is not None:
                verify(note, checkpoint.origin, self.key)
        except ValueError as error:
            raise Refused(f"{what} is refused: {error}") from None
        return checkpoint

    def prove(self, entry: bytes, index: int) -> InclusionProof:
        """The proof that `entry` is in the log as its entry `index`. Raises Refused where it is not."""
        checkpoint, note = self.checkpoint()
        if index >= checkpoint.size:
            raise Refused(
                f"{self.name} has {checkpoint.size} entries by its checkpoint, and the receipt is entry {index}"
            )
        with _Damage(self.name):
            nodes = TileNodes(self.read, checkpoint.size)
            proof = inclusion_proof(nodes, index, checkpoint.size)
            found = nodes(0, index)
        if found != leaf_hash(entry):
            raise Refused(f"entry {index} of {self.name} is not this receipt: one of them was altered")
        if inclusion_root(found, index, checkpoint.size, proof) != checkpoint.root:
            raise Refused(f"{self.name} is damaged: its tiles do not lead to its checkpoint's root")
        return InclusionProof(index, tuple(proof), note)

    def require_consistent(self, old: LogCheckpoint, new: LogCheckpoint) -> None:
        """Raises Refused unless the log of `new` begins with that of `old`, shown by the tiles of this log."""
        if old.origin != new.origin:
            raise Refused(f"the checkpoints are of two logs: {old.origin} and {new.origin}")
        if old.size > new.size:
            raise Refused(f"the log has shrunk: from {old.size} entries to {new.size}")
        proof: list[bytes] = []
        if 0 < old.size < new.size:
            with _Damage(self.name):
                proof = consistency_proof(TileNodes(self.read, new.size), old.size, new.size)
        if not is_consistent(old.size, new.size, old.root, new.root, proof):
            raise Refused(
                f"the log was rewritten: its {new.size} entries do not begin with the {old.size} of the old checkpoint"
            )

    def verify(self) -> LogCheckpoint:
        """Computes every hash of the log anew, from its entries, and returns the checkpoint. Raises Refused, which
        names what differs."""
        checkpoint, _ = self.checkpoint()
        edge = RightEdge(0, [[]])
        for index, entries in enumerate(self._bundles(checkpoint.size)):
            with _Damage(self.name):
                self._require_tile(0, index, checkpoint.size, list(map(leaf_hash, entries)))
            for entry in entries:
                edge.append(leaf_hash(entry))
            if edge.full:
                for name, data in edge.completed():
                    with _Damage(self.name):
                        self._require_tile(name.level or 0, name.index, checkpoint.size, hashes_in(data, WIDTH))
                edge.carry()
        for name, data in edge.partial():
            with _Damage(self.name):
                self._require_tile(name.level or 0, name.index, checkpoint.size, hashes_in(data, name.width))
        if edge.root() != checkpoint.root:
            raise Refused(f"the entries of {self.name} are not those that its checkpoint is about")
        return checkpoint

    def _bundles(self, size: int) -> Iterator[list[bytes]]:
        for index in range(-(-size // WIDTH)):
            name = name_at(None, index, size)
            with _Damage(self.name):
                try:
                    yield entries_in(self.read(name.path), name.width)
                except ValueError as error:
                    raise ValueError(f"{name.path} is malformed: {error}") from None

    def _require_tile(self, level: int, index: int, size: int, hashes: list[bytes]) -> None:
        name = name_at(level, index, size)
        found = hashes_in(self.read(name.path), name.width)
        for at, (one, other) in enumerate(zip(found, hashes, strict=True)):
            if one != other:
                number = (index * WIDTH + at) << HEIGHT * level
                raise ValueError(f"{name.path} and the entries differ from entry {number} on")


class _Damage:
    """What is wrong with a tile, as the refusal of the log."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError):
            raise Refused(f"{self._name} is damaged: {error}") from None
        if isinstance(error, OSError):
            file = f"{error.filename}: " if isinstance(error.filename, str) else ""
            raise Refused(f"{self._name} is damaged: {file}{error.strerror or error}") from None
