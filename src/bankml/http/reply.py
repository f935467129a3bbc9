"""The worker thread's end of a response: a bounded queue from which the event loop sends.

The worker appends parts; the loop takes everything that came since its last look, so many small writes become one. The
worker never waits for the client, because it may hold the model's lock: while the client reads slowly the loop takes
nothing and the queue grows, and at a write beyond `backlog` queued bytes the client is disconnected and the request
cancelled.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from bankml.http.exchange import JSON, Headers
from bankml.http.relay import Relay

_CANCEL_POLL = 0.1  # seconds between checks whether a relay is cancelled or silent


class ReplyState(Enum):
    """How far the worker has come with its response."""

    NOTHING = auto()
    STREAMING = auto()
    COMPLETE = auto()


@dataclass(frozen=True)
class AnswerHead:
    """`length` is the body's bytes, None where it is streamed; `ping_interval` as `exchange.Reply.start` has it."""

    status: int
    content_type: str
    headers: Headers
    length: int | None
    ping_interval: float | None = None


@dataclass(frozen=True)
class PendingOutput:
    """What the worker has queued since the last look. `broken`: it left a streamed response unfinished."""

    head: AnswerHead | None
    data: bytes
    complete: bool
    returned: bool
    broken: bool


class WireReply:
    """`exchange.Reply` over a connection. `wake` makes the loop look and may be called from any thread.

    `overflowed`: the client was too slow, `unsent` bytes were queued for it, and it is to be disconnected.
    """

    def __init__(self, wake: Callable[[], None], stopping: Callable[[], bool], backlog: int) -> None:
        self._wake = wake
        self._stopping = stopping
        self._backlog = backlog
        self._lock = threading.Lock()
        self._woken = False
        self._gone = False
        self._progress = ReplyState.NOTHING
        self._returned = False
        self._head: AnswerHead | None = None
        self._chunks: list[bytes] = []
        self._queued = 0
        self._relay: Relay | None = None
        self.overflowed = False
        self.unsent = 0
        self.size = 0
        self.first_write: float | None = None

    # ---- called by the worker

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        self._put(AnswerHead(status, content_type, headers, len(body)), body, ReplyState.NOTHING, ReplyState.COMPLETE)

    def start(self, status: int, content_type: str, ping_interval: float | None = None, headers: Headers = ()) -> None:
        head = AnswerHead(status, content_type, headers, None, ping_interval)
        self._put(head, b"", ReplyState.NOTHING, ReplyState.STREAMING)

    def write(self, data: bytes) -> bool:
        if self.first_write is None:
            self.first_write = time.monotonic()
        return self._put(None, data, ReplyState.STREAMING, ReplyState.STREAMING)

    def relay(self, relay: Relay) -> bool:
        """Lets the loop forward the relay's source to its end. False once the client is gone or the server stops.
        Raises what the source raised."""
        with self._lock:
            if self._progress is not ReplyState.STREAMING:
                raise RuntimeError(f"a response that is {self._progress.name} cannot be relayed")
            if self._gone:
                return False
            self._relay = relay
        self._look()
        while not relay.wait(_CANCEL_POLL):
            if self.cancelled() or relay.expired:
                self._look()  # the loop ends the relay, which it may be reading from right now
        self._relay = None
        return not self.cancelled()

    def finish(self) -> None:
        self._put(None, b"", ReplyState.STREAMING, ReplyState.COMPLETE)

    def cancelled(self) -> bool:
        return self._gone or self._stopping()

    def returned(self) -> None:
        """The worker has finished with this request, whatever its outcome."""
        with self._lock:
            self._returned = True
        self._look()

    @property
    def progress(self) -> ReplyState:
        return self._progress

    @property
    def gone(self) -> bool:
        return self._gone

    def _put(self, head: AnswerHead | None, data: bytes, before: ReplyState, after: ReplyState) -> bool:
        with self._lock:
            if self._progress is not before:
                raise RuntimeError(f"a response that is {self._progress.name} cannot become {after.name} by this call")
            self._progress = after
            if self._gone:
                return False
            if data and self._queued >= self._backlog:
                self.overflowed, self.unsent = True, self._queued
                self._drop()
            else:
                self._head = head or self._head
                if data:
                    self._chunks.append(data)
                self._queued += len(data)
                self.size += len(data)
        self._look()
        return not self.overflowed

    def _look(self) -> None:
        with self._lock:
            if self._woken:
                return
            self._woken = True
        self._wake()

    # ---- called by the loop

    @property
    def relayed(self) -> Relay | None:
        return self._relay

    def pull(self, relay: Relay) -> bytes:
        """What `relay` can forward now."""
        data = relay.pull()
        if self.first_write is None:
            self.first_write = time.monotonic()
        self.size += len(data)
        return data

    def take(self) -> PendingOutput:
        """Everything since the last take."""
        with self._lock:
            self._woken = False
            head, self._head = self._head, None
            data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
            self._chunks.clear()
            self._queued = 0
            complete = self._progress is ReplyState.COMPLETE
            return PendingOutput(head, data, complete, self._returned, self._returned and not complete)

    def leave(self) -> None:
        """The client is gone: nothing more is queued."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        self._gone = True
        self._chunks.clear()
        self._queued = 0
