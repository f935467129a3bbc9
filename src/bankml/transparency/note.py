"""Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint).

    ORIGIN
    SIZE
    ROOT in base64

    — ORIGIN SIGNATURE in base64, behind four bytes that name the key

The checkpoint of a log without a key has no such last line.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from bankml.transparency.tree import HASH

ED25519 = b"\x01"
"""The type of a key of this algorithm."""

MOST_SIGNATURES = 64
_NUMBER = re.compile("0|[1-9][0-9]{0,17}", re.ASCII)
_KEY_NAME = re.compile(r"[^\s+]+")


class NoteSigner(Protocol):
    """A private key that signs the notes of a log."""

    @property
    def public(self) -> "NoteVerifier": ...

    def sign(self, data: bytes) -> bytes:
        """The signature of `data`, 64 bytes."""


class NoteVerifier(Protocol):
    """A public key; `raw` are the 32 bytes of RFC 8032."""

    @property
    def raw(self) -> bytes: ...

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Whether `signature` is that of `data` by this key."""


@dataclass(frozen=True)
class LogCheckpoint:
    """The state of a log: `size` entries with this root."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """What is signed of it."""
        return f"{self.origin}\n{self.size}\n{base64(self.root)}\n"

    @classmethod
    def of(cls, note: str) -> "LogCheckpoint":
        """The checkpoint that a note has, whoever signed it. Raises ValueError, with the rest of a sentence."""
        text, _, _ = note.rpartition("\n\n")
        lines = text.split("\n")
        if len(lines) != 3 or not lines[0] or not _NUMBER.fullmatch(lines[1]):
            raise ValueError("it is not a checkpoint: an origin, a size and a root are expected, each on a line")
        return cls(lines[0], int(lines[1]), hash_of(lines[2]))


def base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def from_base64(text: str) -> bytes:
    """Raises ValueError for what is not base64 in the one form of these bytes."""
    try:
        data = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise ValueError("it has a line that is not base64") from None
    if base64(data) != text:
        raise ValueError("it has a line that is not base64")
    return data


def hash_of(text: str) -> bytes:
    """A hash in base64. Raises ValueError."""
    data = from_base64(text)
    if len(data) != HASH:
        raise ValueError(f"it has a hash of {len(data)} bytes, not {HASH}")
    return data


def key_number(name: str, raw: bytes) -> bytes:
    """The four bytes by which a note's signatures name a key."""
    return sha256(name.encode("utf-8") + b"\n" + ED25519 + raw).digest()[:4]


def verifier_key(name: str, key: NoteVerifier) -> str:
    """The key as readers and witnesses of logs are configured with it: NAME+NUMBER+KEY."""
    return f"{name}+{key_number(name, key.raw).hex()}+{base64(ED25519 + key.raw)}"


def signed(text: str, name: str, key: NoteSigner | None) -> str:
    """The note of `text`, which ends with a line end; without a key it has no signature."""
    if key is None:
        return f"{text}\n"
    signature = key_number(name, key.public.raw) + key.sign(text.encode("utf-8"))
    return f"{text}\n— {name} {base64(signature)}\n"


def verify(note: str, name: str, key: NoteVerifier) -> None:
    """Raises ValueError, with the rest of a sentence, unless `key` signed the note under this name. Signatures of
    other keys, such as those of witnesses, are ignored, as the specification wants it."""
    text, separator, rest = note.rpartition("\n\n")
    if not separator:
        raise ValueError("it is not a note: a blank line is missing")
    lines = rest.removesuffix("\n").split("\n") if rest else []
    if not lines:
        raise ValueError("it is not signed")
    if len(lines) > MOST_SIGNATURES or not rest.endswith("\n"):
        raise ValueError("its lines of signatures are malformed")
    number, found = key_number(name, key.raw), False
    for line in lines:
        parts = line.split(" ")
        if len(parts) != 3 or parts[0] != "—" or not _KEY_NAME.fullmatch(parts[1]):
            raise ValueError("its lines of signatures are malformed")
        data = from_base64(parts[2])
        if parts[1] == name and data[:4] == number:
            found = True
            if not key.verifies(data[4:], f"{text}\n".encode()):
                raise ValueError("its signature is not that of its text: one of them was altered")
    if not found:
        raise ValueError("it is not signed by the key given")
