"""A receipt as an in-toto statement in a DSSE envelope, which supply-chain tools read and verify."""

from base64 import b64encode
from collections.abc import Mapping

from bankml.receipt.canonical import canonical_json
from bankml.signing.keys import SigningKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:bankml:receipt:1"
"""The `$id` of docs/receipt.schema.json."""

SUBJECTS = {"response": "response_sha256", "request": "request_sha256"}
"""What a statement is about: the texts whose hashes the receipt has."""


def statement(receipt: Mapping[str, object]) -> dict[str, object]:
    """The in-toto statement about an answer's text and its request, with the receipt as its predicate."""
    subjects = [{"name": name, "digest": {"sha256": receipt[field]}} for name, field in SUBJECTS.items()]
    return {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(receipt),
    }


def envelope(value: Mapping[str, object], key: SigningKey) -> dict[str, object]:
    """`value` in a DSSE envelope that `key` signs. Raises ValueError for what has no canonical form."""
    payload = canonical_json(value)
    signature = key.sign(pre_authentication(PAYLOAD_TYPE, payload))
    return {
        "payload": b64encode(payload).decode("ascii"),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key.key_id, "sig": b64encode(signature).decode("ascii")}],
    }


def pre_authentication(kind: str, payload: bytes) -> bytes:
    """The bytes that DSSE signs. They begin with DSSEv1, as neither a receipt nor a checkpoint does, so that no
    signature of one is one of another."""
    name = kind.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)
