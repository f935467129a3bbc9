"""What becomes of a receipt's fields before a client gets them: they are signed, where there is a key, and recorded,
where there is a log."""

import time
from collections.abc import Callable
from typing import Literal, Protocol

from bankml.receipt.canonical import canonical_json

Fields = dict[str, object]

Outcome = Literal["cancelled", "failed"]
"""Why an answer has not come to its end: its client left, or an error ended it."""

SIGNATURE = "signature"
"""The one member that a signature does not cover."""

DAY = 86400


class ReceiptSigner(Protocol):
    """A private key. `key_id` is the sha256 of its public key (64 hex digits), `public_pem` that key in PEM."""

    @property
    def key_id(self) -> str: ...

    @property
    def public_pem(self) -> str: ...

    def sign(self, data: bytes) -> bytes:
        """The signature of `data`, 64 bytes."""


class ReceiptRecorder(Protocol):
    """A log of receipts (transparency.receipts.ReceiptLog)."""

    def record(self, receipt_at: Callable[[Fields | None], Fields]) -> Fields:
        """Records the receipt that `receipt_at` makes for its place in the log, and returns it. For None it makes the
        receipt that has none, where the log may be left out. Raises LogUnavailable."""

    def require_ready(self) -> None:
        """Raises LogUnavailable where a receipt could not be recorded now."""

    def describe(self) -> Fields: ...

    def close(self) -> None: ...


def signed_bytes(receipt: Fields) -> bytes:
    """What the signature of `receipt` covers: every member but itself, in canonical form. Raises ValueError."""
    return canonical_json({name: value for name, value in receipt.items() if name != SIGNATURE})


def utc(seconds: float) -> str:
    """Seconds since the epoch as receipts write a moment: 2026-01-31T12:00:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Issuer:
    """Issues the receipts of one server.

    With a `signer` each is signed, and with `valid_days` it names the moment at which its signature expires. With a
    `log` each is recorded before it is given, and names its place there.
    """

    def __init__(
        self,
        signer: ReceiptSigner | None = None,
        valid_days: int | None = None,
        clock: Callable[[], float] = time.time,
        log: ReceiptRecorder | None = None,
    ) -> None:
        self._log = log
        self._signer = signer
        self._valid_days = valid_days
        self._clock = clock

    def issue(self, fields: Fields) -> Fields:
        """The receipt that has these fields. Raises ValueError for a field that has no canonical form, LogUnavailable
        for a receipt that cannot be recorded."""
        if self._log is None:
            return self._signed(fields)
        return self._log.record(lambda place: self._signed(fields if place is None else {**fields, "log": place}))

    def issue_unfinished(self, fields: Fields, outcome: Outcome) -> None:
        """Records the receipt of an answer that has not come to its end; no client gets it. Raises LogUnavailable."""
        if self._log is not None:
            self.issue({**fields, "outcome": outcome})

    def require_ready(self) -> None:
        """To be called before an answer is computed. Raises LogUnavailable where its receipt could not be recorded."""
        if self._log is not None:
            self._log.require_ready()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def describe(self) -> Fields:
        """What `GET /bankml` says of it: the public key, by which a client checks signatures, and the log."""
        signer = self._signer
        known = None if signer is None else {"key_id": signer.key_id, "public_key": signer.public_pem}
        return {"signing": known, "log": None if self._log is None else self._log.describe()}

    def _signed(self, fields: Fields) -> Fields:
        if self._signer is None:
            return fields
        now = self._clock()
        receipt = {**fields, "signed": True, "signed_at": utc(now)}
        if self._valid_days is not None:
            receipt["expires_at"] = utc(now + self._valid_days * DAY)
        receipt["key_id"] = self._signer.key_id
        return {**receipt, SIGNATURE: self._signer.sign(signed_bytes(receipt)).hex()}


UNSIGNED = Issuer()
"""The issuer of a server without a key."""
