"""The one place that imports the package `cryptography`: it is installed by the extra `sign`, and needed only where a
key is."""

from typing import TYPE_CHECKING

from bankml.errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MISSING = "signatures need the Python package cryptography: install it with pip install 'bankml[sign]'"


def require() -> None:
    """Raises UsageError, which says what to install, where the package is not."""
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
    except ImportError:
        raise UsageError(MISSING) from None


def new_key() -> "Ed25519PrivateKey":
    require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate()


def private_pem(key: "Ed25519PrivateKey", passphrase: bytes | None) -> bytes:
    """The key as PKCS#8 in PEM, encrypted where there is a passphrase."""
    from cryptography.hazmat.primitives import serialization as form

    encryption = form.NoEncryption() if passphrase is None else form.BestAvailableEncryption(passphrase)
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption)


def public_pem(key: "Ed25519PublicKey") -> bytes:
    """The key as SubjectPublicKeyInfo in PEM, as `openssl pkey -pubout` writes it."""
    from cryptography.hazmat.primitives import serialization as form

    return key.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)


def public_der(key: "Ed25519PublicKey") -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return key.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)


def raw_public(key: "Ed25519PublicKey") -> bytes:
    """The 32 bytes of RFC 8032."""
    return key.public_bytes_raw()


def private_from_pem(data: bytes, passphrase: bytes | None) -> "Ed25519PrivateKey":
    """Raises ValueError, with the rest of a sentence, for what is not such a key or does not open."""
    require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(data, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # its words may be about the passphrase: they are not shown
        why = "not a private key in PEM (PKCS#8)" if passphrase is None else "the passphrase does not open it"
        raise ValueError(why) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("a key of another kind: an Ed25519 key is expected")
    return key


def public_from_pem(data: bytes) -> "Ed25519PublicKey":
    """Raises ValueError, with the rest of a sentence, for what is not such a key in the one form that it has.

    PEM readers ignore bytes that mean nothing. Here they are an error, so that no changed byte of a key is accepted.
    """
    require()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("not a public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("a key of another kind: an Ed25519 key is expected")
    if public_pem(key) != data:
        raise ValueError("not in the form in which bankml keygen and openssl write a public key: a byte was altered")
    return key


def verifies(key: "Ed25519PublicKey", signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True
