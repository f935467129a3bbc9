"""Ed25519 keys in files: PKCS#8 in PEM for the private one, SubjectPublicKeyInfo in PEM for the public one."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from bankml.errors import UsageError
from bankml.files import open_regular, problem, unreadable
from bankml.signing import ed25519
from bankml.signing.memory import forbid_dumps

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MOST_BYTES = 1 << 16
"""Of a key's file, and of a passphrase's."""

ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
PUBLIC_SUFFIX = ".pub.pem"


class PublicKey:
    """A key that verifies. `key_id` is the sha256 of its SubjectPublicKeyInfo in DER, 64 hex digits."""

    def __init__(self, key: "Ed25519PublicKey") -> None:
        self._key = key
        self.key_id = sha256(ed25519.public_der(key)).hexdigest()
        self.pem = ed25519.public_pem(key).decode("ascii")
        self.raw = ed25519.raw_public(key)

    @classmethod
    def read(cls, path: str) -> "PublicKey":
        """Raises FileProblem, UsageError where the package for it is not installed."""
        try:
            return cls(ed25519.public_from_pem(_content(path)))
        except ValueError as error:
            raise unreadable(path, str(error)) from None

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Whether `signature` is that of `data` by this key."""
        return ed25519.verifies(self._key, signature, data)


class SigningKey:
    """A key that signs. Once one exists, this process leaves no core file (memory.forbid_dumps)."""

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        forbid_dumps()
        self._key = key
        self.public = PublicKey(key.public_key())

    @classmethod
    def read(cls, path: str, passphrase: Callable[[], bytes]) -> "SigningKey":
        """`passphrase` is called for an encrypted key. Raises FileProblem, and UsageError for a file that others than
        its owner may read, or where the package for it is not installed."""
        ed25519.require()
        forbid_dumps()
        data = _private_content(path)
        secret = passphrase() if ENCRYPTED in data else None
        try:
            return cls(ed25519.private_from_pem(data, secret))
        except ValueError as error:
            raise unreadable(path, str(error)) from None

    @property
    def key_id(self) -> str:
        return self.public.key_id

    @property
    def public_pem(self) -> str:
        return self.public.pem

    def sign(self, data: bytes) -> bytes:
        """The signature of `data` (RFC 8032), 64 bytes."""
        return self._key.sign(data)


@dataclass(frozen=True)
class KeyFiles:
    """The files of a key that was made, and its id."""

    private: str
    public: str
    key_id: str


def public_path(path: str) -> str:
    """The file of the public key beside the private one at `path`."""
    return path + PUBLIC_SUFFIX


def require_new(path: str) -> None:
    """Raises UsageError where one of a new key's files exists: a key is never overwritten."""
    for one in (path, public_path(path)):
        if os.path.lexists(one):
            raise UsageError(f"{one} exists: a key is never overwritten, give another name or remove it")


def generate(path: str, passphrase: bytes | None) -> KeyFiles:
    """Makes a key and writes its two files: the private one for its owner alone (mode 0600), encrypted where there is a
    passphrase. Raises UsageError, FileProblem; no file is left behind then."""
    require_new(path)
    forbid_dumps()
    key = ed25519.new_key()
    public = PublicKey(key.public_key())
    _create(path, ed25519.private_pem(key, passphrase), 0o600)
    try:
        _create(public_path(path), public.pem.encode("ascii"), 0o644)
    except BaseException:
        os.unlink(path)
        raise
    return KeyFiles(path, public_path(path), public.key_id)


def passphrase_in(path: str) -> bytes:
    """The first line of a file that its owner alone may read. Raises FileProblem, UsageError."""
    line = _private_content(path).split(b"\n", 1)[0].removesuffix(b"\r")
    if not line:
        raise UsageError(f"{path} has no passphrase: its first line is empty")
    return line


def _content(path: str) -> bytes:
    with open_regular(path) as file:
        return _bounded(file.read(MOST_BYTES + 1), path)


def _private_content(path: str) -> bytes:
    with open_regular(path) as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise UsageError(f"{path} may be read by others than its owner (mode {mode:04o}): chmod 600 it")
        return _bounded(file.read(MOST_BYTES + 1), path)


def _bounded(data: bytes, path: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise unreadable(path, f"longer than {MOST_BYTES} bytes, which no key is")
    return data


def _create(path: str, data: bytes, mode: int) -> None:
    """A new file, complete and on the disk, or none. Raises FileProblem."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, mode)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
    except OSError as error:
        raise problem("write", path, error) from error
