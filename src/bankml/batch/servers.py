"""Answers requests with running servers. A receipt that does not fit its answer, or that is of another model or other
arithmetic, ends the use of its server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bankml.batch.computation import Computation
from bankml.batch.entry import answer_line
from bankml.batch.http_client import ServerClient
from bankml.batch.local import UNAVAILABLE, shows_the_date
from bankml.batch.request import CHAT, EMBEDDINGS, TEXT, BatchRequest
from bankml.batch.worker import WorkerLost
from bankml.errors import Cancelled, Refused
from bankml.receipt.check import RECEIPT_KEY, check
from bankml.receipt.replay_record import ReplayRecord, read_record
from bankml.receipt.signature import ReceiptVerifier, signature_problems

PATIENCE_S = 60.0
"""Seconds for which a server may answer that it is busy."""

PAUSE_S = 0.25

MESSAGES = [{"role": "user", "content": "a"}]
PROBES = (
    (CHAT, {"messages": MESSAGES, "max_tokens": 1, "temperature": 0, "seed": 0, "cache_prompt": False}),
    (TEXT, {"prompt": "a", "max_tokens": 1, "temperature": 0, "seed": 0, "cache_prompt": False}),
    (EMBEDDINGS, {"input": "a", "cache_prompt": False}),
)
"""Requests whose receipts say what a server computes with; the first that it answers counts."""


@dataclass(frozen=True)
class Serves:
    """What a server's answers depend on: the name of its model, and what it computes with."""

    model: str
    computation: Computation

    def difference(self, other: Serves) -> str | None:
        """In what `other` differs; None: in nothing."""
        if other.model != self.model:
            return f"model is {other.model}, not {self.model}"
        return self.computation.difference(other.computation)


class ServerWorker:
    """One server. `pinned` is the sha256 that its model must have (None: any), `key` the key that must have signed its
    receipts (None: none need be signed)."""

    def __init__(
        self, client: ServerClient, width: int, pinned: str | None = None, key: ReceiptVerifier | None = None
    ) -> None:
        self.width = width
        self._client = client
        self._pinned = pinned
        self._key = key
        self.serves: Serves | None = None

    @property
    def name(self) -> str:
        return self._client.url

    def connect(self) -> Serves:
        """What the server says that it computes with, which every answer is compared with. Raises WorkerLost."""
        try:
            if shows_the_date(str(self._client.get("/props").get("chat_template"))):
                what = "has a chat template that shows the date, which a server takes from its clock"
                raise WorkerLost(f"{what}: run the batch with --model")
            self.serves = self._probed()
        except (OSError, ValueError) as error:
            raise WorkerLost(f"cannot be used: {_reason(error)}") from None
        if self._pinned not in (None, found := self.serves.computation.model_sha256):
            raise WorkerLost(f"serves the model {found}, not {self._pinned}")
        return self.serves

    def _probed(self) -> Serves:
        for url, body in PROBES:
            sent = json.dumps(body).encode()
            status, data = self._client.send("POST", url, sent)
            if status == 200:
                answer = self._checked(sent, data)
                return _serves(answer)
        raise WorkerLost(f"answers no request: {_message(data)}")

    def answer(self, request: BatchRequest, cancelled: Callable[[], bool]) -> bytes:
        """Raises WorkerLost for a server that cannot be reached, stays busy or lies; Cancelled."""
        began = time.monotonic()
        while True:
            try:
                status, data = self._client.send("POST", request.url, request.body)
            except OSError as error:
                if cancelled():
                    raise Cancelled from None
                raise WorkerLost(f"is gone: {_reason(error)}") from None
            if cancelled():
                raise Cancelled
            if status not in UNAVAILABLE:
                return self._line(request, status, data)
            if time.monotonic() - began > PATIENCE_S:
                raise WorkerLost(f"stays unavailable: {_message(data)}")
            time.sleep(PAUSE_S)

    def _line(self, request: BatchRequest, status: int, data: bytes) -> bytes:
        if status == 401:
            raise WorkerLost("requires another API key")
        if status == 200:
            answer = self._checked(request.body, data)
            self._require_same(answer)
            return answer_line(request, status, answer, 0.0)
        try:
            found = json.loads(data)
            if isinstance(found, dict) and isinstance(found.get("error"), dict):
                return answer_line(request, status, found)
        except (ValueError, RecursionError):
            pass
        raise WorkerLost(f"gives an error of another form for line {request.number}: {data[:80]!r}")

    def _checked(self, sent: bytes, data: bytes) -> Mapping[str, Any]:
        """The answer, whose receipt fits it and the request. Raises WorkerLost."""
        checked = check(sent, data)
        problems = list(checked.problems)
        if checked.receipt is not None and self._key is not None:
            problems += signature_problems(checked.receipt, self._key, time.time())
        if problems:
            raise WorkerLost(f"lies: the receipt of an answer does not fit: {problems[0]}")
        answer: Mapping[str, Any] = json.loads(data)
        return answer

    def _require_same(self, answer: Mapping[str, Any]) -> None:
        """Raises WorkerLost for an answer of another model, or one that was not computed as its request alone is."""
        assert self.serves is not None  # it was connected
        found = _serves(answer)
        if different := self.serves.difference(found):
            raise WorkerLost(f"lies: in the receipt of an answer {different}")
        receipt = answer[RECEIPT_KEY]
        cached = [one.cached_tokens for one in _record(receipt).answers] if "replay" in receipt else []
        if any(cached) or "slot_file_sha256" in receipt:
            raise WorkerLost("uses its cache though the request says not to")

    def resume(self, cancelled: Callable[[], bool]) -> None:
        """It is never paused."""

    def interrupt(self) -> None:
        self._client.interrupt()

    def close(self) -> None:
        self._client.interrupt()


def _serves(answer: Mapping[str, Any]) -> Serves:
    receipt = answer[RECEIPT_KEY]
    if "replay" not in receipt and "vectors" not in receipt:
        raise WorkerLost("does not say how its answers are computed: it is no server of --native")
    if "replay" in receipt:
        _record(receipt)
    try:
        return Serves(str(answer.get("model")), Computation.of_receipt(receipt))
    except (KeyError, TypeError):
        raise WorkerLost("has a receipt that cannot be read") from None


def _record(receipt: Mapping[str, Any]) -> ReplayRecord:
    try:
        return read_record(receipt["replay"])
    except ValueError as error:
        raise WorkerLost(f"has a receipt that cannot be read: {error}") from None


def connected(workers: Sequence[ServerWorker], note: Callable[[str], None]) -> list[ServerWorker]:
    """The workers that can be used, all of which compute the same; `note` names the others. Raises Refused where none
    can, and where they differ and no pin says which of them is right."""
    found = list(_usable(workers, note))
    if not found:
        raise Refused("no server can be used")
    first = found[0]
    assert first.serves is not None
    for other in found[1:]:
        assert other.serves is not None
        if different := first.serves.difference(other.serves):
            raise Refused(f"{first.name} and {other.name} do not compute the same: {different}")
    return found


def _usable(workers: Sequence[ServerWorker], note: Callable[[str], None]) -> Iterator[ServerWorker]:
    for worker in workers:
        try:
            worker.connect()
        except WorkerLost as lost:
            note(f"dropped: {worker.name} {lost.reason}")
        else:
            yield worker


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return repr(data[:80])
