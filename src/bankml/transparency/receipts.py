"""Receipts as the entries of a log."""

import logging
from collections.abc import Callable, Mapping
from hashlib import sha256

from bankml.errors import LogUnavailable, Refused
from bankml.receipt.canonical import canonical_json
from bankml.transparency.tiles import MOST_ENTRY
from bankml.transparency.writer import LogWriter

Receipt = dict[str, object]

log = logging.getLogger("bankml.transparency")


def entry_of(receipt: Mapping[str, object]) -> bytes:
    """The entry that a receipt is: its canonical form, signature included; of one that is longer than an entry may be,
    the canonical form of `{"receipt_sha256": …}`. Raises ValueError."""
    data = canonical_json(receipt)
    return data if len(data) <= MOST_ENTRY else canonical_json({"receipt_sha256": sha256(data).hexdigest()})


def place_of(receipt: Mapping[str, object]) -> tuple[str, int]:
    """Origin and index of the log entry that a receipt says it is. Raises Refused for one that names none."""
    place = receipt.get("log")
    origin, index = (place.get("origin"), place.get("index")) if isinstance(place, dict) else (None, None)
    if not isinstance(origin, str) or not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise Refused("the receipt names no place in a log: its server keeps none (serve --log)")
    return origin, index


class ReceiptLog:
    """Records every receipt of a server. With `optional` a receipt that cannot be recorded is given without a place."""

    def __init__(self, writer: LogWriter, optional: bool = False) -> None:
        self._writer = writer
        self._optional = optional
        self._skipping = False

    def record(self, receipt_at: Callable[[Receipt | None], Receipt]) -> Receipt:
        """The receipt that `receipt_at` makes for its place, once it is in the log; for None, where there is no place.
        Raises LogUnavailable."""
        made: list[Receipt] = []

        def entry_at(index: int) -> bytes:
            made.append(receipt_at({"origin": self._writer.origin, "index": index}))
            return entry_of(made[-1])

        try:
            self._writer.append(entry_at)
        except LogUnavailable as error:
            if not self._optional:
                raise
            self._note(error.message)
            return receipt_at(None)
        self._skipping = False
        return made[-1]

    def require_ready(self) -> None:
        """Raises LogUnavailable where a receipt could not be recorded now, and must be."""
        if not self._optional:
            self._writer.require_ready()

    def describe(self) -> Receipt:
        """What `GET /bankml` says of the log."""
        return {"origin": self._writer.origin, "size": self._writer.size}

    def close(self) -> None:
        self._writer.close()

    def _note(self, why: str) -> None:
        """The first of a row of receipts that are not recorded is in the server's log."""
        if not self._skipping:
            log.error("receipts are not recorded (--log-optional): %s", why)
        self._skipping = True
