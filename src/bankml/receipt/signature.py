"""Checks the signature of a receipt against a public key. Problems are returned as sentences, never raised."""

import calendar
import re
import time
from collections.abc import Iterator, Mapping
from typing import Protocol

from bankml.receipt.issuer import SIGNATURE, signed_bytes

HEX_SIGNATURE = re.compile("[0-9a-f]{128}")
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")

CLOCK_SKEW = 300
"""Seconds by which the clock of a server may be ahead of the checker's."""


class ReceiptVerifier(Protocol):
    """A public key; `key_id` is its sha256, 64 hex digits."""

    @property
    def key_id(self) -> str: ...

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Whether `signature` is that of `data` by this key."""


def signature_problems(receipt: Mapping[str, object], key: ReceiptVerifier, now: float) -> Iterator[str]:
    """What is wrong with the signature of `receipt`: it is missing, by another key, malformed, not that of this
    receipt, or has expired at `now` (seconds since the epoch)."""
    found = receipt.get(SIGNATURE)
    if receipt.get("signed") is not True or found is None:
        yield "the receipt has no signature: its server has no key, or the signature was removed"
        return
    if receipt.get("key_id") != key.key_id:
        yield f"the signature is by the key {_shown(receipt.get('key_id'))}, and the key given is {key.key_id}"
        return
    if not isinstance(found, str) or not HEX_SIGNATURE.fullmatch(found):
        yield "the signature is not 128 hex digits in lower case"
        return
    try:
        data = signed_bytes(dict(receipt))
    except ValueError as error:
        yield f"the signature cannot be checked: the receipt has no canonical form: {error}"
        return
    if not key.verifies(bytes.fromhex(found), data):
        yield "the signature is not that of this receipt: a field or the signature was altered"
        return
    yield from _times(receipt, now)


def _times(receipt: Mapping[str, object], now: float) -> Iterator[str]:
    signed_at, expires_at = _moment(receipt.get("signed_at")), _moment(receipt.get("expires_at"))
    if signed_at is None or (expires_at is None and "expires_at" in receipt):
        yield "the signature has no time that can be read (signed_at, expires_at: 2026-01-31T12:00:00Z)"
    elif signed_at > now + CLOCK_SKEW:
        yield f"the signature is from the future: signed_at is {receipt['signed_at']}"
    elif expires_at is not None and expires_at <= now:
        yield f"the signature has expired: expires_at is {receipt['expires_at']}"


def _moment(value: object) -> int | None:
    """Seconds since the epoch; None for what is not such a time."""
    if not isinstance(value, str) or not MOMENT.fullmatch(value):
        return None
    try:
        return calendar.timegm(time.strptime(value, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return None


def _shown(value: object) -> str:
    return value if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else "no id that can be read"
