"""The half of an answer that the worker thread holds, and how its bytes reach the event loop.

The worker puts parts in; the loop takes all that has come since it last looked, so that many small writes become
one. Between the two stands one lock. When the client reads slowly the loop takes nothing, and the worker waits in
`write` once `backlog` bytes are kept.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from bankml.http.exchange import JSON, Headers
from bankml.http.relay import Relay

_CANCEL_POLL = 0.1  # seconds between looks at whether a relay is still wanted


class ReplyState(Enum):
    """How far the worker has come with its answer."""

    NOTHING = auto()
    STREAMING = auto()
    COMPLETE = auto()


@dataclass(frozen=True)
class AnswerHead:
    """What an answer begins with; `length` is the body's bytes, None where it is streamed."""

    status: int
    content_type: str
    headers: Headers
    length: int | None


@dataclass(frozen=True)
class PendingOutput:
    """What the worker has given since the last look. `broken`: it left a streamed answer unfinished."""

    head: AnswerHead | None
    data: bytes
    complete: bool
    returned: bool
    broken: bool


class WireReply:
    """`exchange.Reply` over a connection. `wake` makes the loop look and may be called from any thread."""

    def __init__(self, wake: Callable[[], None], stopping: Callable[[], bool], backlog: int) -> None:
        self._wake = wake
        self._stopping = stopping
        self._backlog = backlog
        self._changed = threading.Condition(threading.Lock())
        self._woken = False
        self._gone = False
        self._progress = ReplyState.NOTHING
        self._returned = False
        self._head: AnswerHead | None = None
        self._chunks: list[bytes] = []
        self._held = 0
        self._relay: Relay | None = None
        self.size = 0
        self.first_write: float | None = None

    # ---- called by the worker

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        self._put(AnswerHead(status, content_type, headers, len(body)), body, ReplyState.NOTHING, ReplyState.COMPLETE)

    def start(self, status: int, content_type: str) -> None:
        self._put(AnswerHead(status, content_type, (), None), b"", ReplyState.NOTHING, ReplyState.STREAMING)

    def write(self, data: bytes) -> bool:
        if self.first_write is None:
            self.first_write = time.monotonic()
        return self._put(None, data, ReplyState.STREAMING, ReplyState.STREAMING)

    def relay(self, relay: Relay) -> bool:
        """Lets the loop pass on what `relay` gives, until that is over. False once the client is gone or the server
        stops. Raises what the relay's source raised."""
        with self._changed:
            if self._progress is not ReplyState.STREAMING:
                raise RuntimeError(f"an answer that is {self._progress.name} cannot be relayed")
            if self._gone:
                return False
            self._relay = relay
        self._look()
        while not relay.wait(_CANCEL_POLL):
            if self.cancelled():
                self._look()  # the loop ends the relay, which it may be reading from right now
        self._relay = None
        return not self.cancelled()

    def finish(self) -> None:
        self._put(None, b"", ReplyState.STREAMING, ReplyState.COMPLETE)

    def cancelled(self) -> bool:
        return self._gone or self._stopping()

    def returned(self) -> None:
        """The worker is done with this request, whatever has become of it."""
        with self._changed:
            self._returned = True
        self._look()

    @property
    def progress(self) -> ReplyState:
        return self._progress

    @property
    def gone(self) -> bool:
        return self._gone

    def _put(self, head: AnswerHead | None, data: bytes, before: ReplyState, after: ReplyState) -> bool:
        with self._changed:
            if self._progress is not before:
                raise RuntimeError(f"an answer that is {self._progress.name} cannot become {after.name} from here")
            while self._held >= self._backlog and not self._gone:
                self._changed.wait()
            self._progress = after
            if self._gone:
                return False
            self._head = head or self._head
            if data:
                self._chunks.append(data)
            self._held += len(data)
            self.size += len(data)
        self._look()
        return True

    def _look(self) -> None:
        with self._changed:
            if self._woken:
                return
            self._woken = True
        self._wake()

    # ---- called by the loop

    @property
    def relayed(self) -> Relay | None:
        return self._relay

    def pull(self, relay: Relay) -> bytes:
        """What `relay` can pass on now."""
        data = relay.pull()
        if self.first_write is None:
            self.first_write = time.monotonic()
        self.size += len(data)
        return data

    def take(self) -> PendingOutput:
        """Everything since the last take."""
        with self._changed:
            self._woken = False
            head, self._head = self._head, None
            data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
            self._chunks.clear()
            if self._held:
                self._held = 0
                self._changed.notify_all()
            complete = self._progress is ReplyState.COMPLETE
            return PendingOutput(head, data, complete, self._returned, self._returned and not complete)

    def leave(self) -> None:
        """The client is gone: nothing more is taken, and whoever waits in `write` goes on."""
        with self._changed:
            self._gone = True
            self._chunks.clear()
            self._held = 0
            self._changed.notify_all()
