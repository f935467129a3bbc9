"""A proof that an entry is in a log, as text (C2SP tlog-proof): it is verified without the log.

c2sp.org/tlog-proof@v1
index INDEX
HASH in base64, from the leaf's sibling to the root's child
…

CHECKPOINT
"""

import re
from dataclasses import dataclass

from bankml.transparency.note import LogCheckpoint, NoteVerifier, base64, hash_of, verify
from bankml.transparency.tree import inclusion_root, leaf_hash

HEADER = "c2sp.org/tlog-proof@v1"
_INDEX = re.compile("index (0|[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True)
class InclusionProof:
    """The entry `index` is in the log that `note` is the checkpoint of."""

    index: int
    hashes: tuple[bytes, ...]
    note: str

    @property
    def text(self) -> str:
        lines = [HEADER, f"index {self.index}", *map(base64, self.hashes)]
        return "\n".join([*lines, "", self.note])

    @classmethod
    def of(cls, text: str) -> "InclusionProof":
        """Raises ValueError, with the rest of a sentence. A line of extra data is accepted, and means nothing here."""
        head, separator, note = text.partition("\n\n")
        lines = head.split("\n")
        if lines[0] != HEADER or not separator:
            raise ValueError(f"it is not a proof: the first line is not {HEADER}, or there is no checkpoint")
        if len(lines) > 1 and lines[1].startswith("extra "):
            del lines[1]
        found = _INDEX.fullmatch(lines[1]) if len(lines) > 1 else None
        if found is None:
            raise ValueError("it has no line `index NUMBER`")
        return cls(int(found[1]), tuple(map(hash_of, lines[2:])), note)

    def verify(self, entry: bytes, key: NoteVerifier | None) -> LogCheckpoint:
        """The checkpoint whose log has `entry`. Raises ValueError, with the rest of a sentence, where the proof is not
        about it, or `key` did not sign the checkpoint."""
        checkpoint = LogCheckpoint.of(self.note)
        if key is not None:
            verify(self.note, checkpoint.origin, key)
        if inclusion_root(leaf_hash(entry), self.index, checkpoint.size, self.hashes) != checkpoint.root:
            raise ValueError("it does not lead from this receipt to the checkpoint's root: one of them was altered")
        return checkpoint
