"""Persistent connections to the engine, used by worker threads, blocking.

A worker that waits for the engine checks every `_POLL` seconds whether its client is still connected. If not, the
connection to the engine is closed, and llama-server stops generating when it notices.
"""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bankml.errors import Cancelled, EngineFailed, EngineTimeout
from bankml.http.limits import Limits
from bankml.upstream.engine_answer import AnswerReader, EngineHead, broken

_POLL = 0.1
_TIMEVAL = struct.Struct("ll")
_READ = 1 << 16
_CONNECT = 5.0  # seconds; a loopback address answers at once or its queue is full

SocketName = tuple[str, int]


class ConnectionLost(EngineFailed):
    """The engine closed the connection without sending any byte of a response."""


@dataclass(frozen=True)
class Patience:
    """How long a worker waits: until `cancelled()` (raises Cancelled), or until the time `until`, or for `silence`
    seconds without a byte of the engine (raises EngineTimeout)."""

    cancelled: Callable[[], bool]
    until: float | None = None
    silence: float | None = None

    def check(self, since: float) -> None:
        """`since` is when the last byte was received or sent (time.monotonic)."""
        now = time.monotonic()
        if self.cancelled():
            raise Cancelled
        if self.until is not None and now > self.until:
            raise EngineTimeout("llama-server did not respond in time")
        if self.silence is not None and now - since > self.silence:
            raise EngineTimeout(f"llama-server sent nothing for {self.silence:g} s")


@dataclass(frozen=True)
class EngineResponse:
    """A complete response."""

    head: EngineHead
    body: bytes


class EngineConnection:
    """One connection, one request at a time. After a response was read to its end `open` says whether it can be reused.

    `kept`: it was idle before this request, so the engine may have closed it. `adapters_checked`: the engine has said
    over it which LoRA adapters it has loaded.
    """

    def __init__(self, connected: socket.socket, host: str, limits: Limits) -> None:
        self._socket = connected
        # The kernel's own timeout: Python's would need another system call each time.
        self._socket.settimeout(None)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL.pack(0, int(_POLL * 1e6)))
        self._host = host
        self._limits = limits
        self.open = True
        self.kept = False
        self.adapters_checked = False

    def close(self) -> None:
        self.open = False
        self._socket.close()

    def fetch(self, method: str, target: str, body: bytes | None, patience: Patience) -> EngineResponse:
        """Sends a request and reads the complete response. Raises EngineFailed, ConnectionLost or Cancelled; the
        connection is closed then."""
        answer = self.send(method, target, body, patience)
        return EngineResponse(answer.head, answer.read_all())

    def send(self, method: str, target: str, body: bytes | None, patience: Patience) -> "EngineAnswer":
        """Sends a request and reads the response's head. `target` is a valid request target. Raises as `fetch`."""
        head = f"{method} {target} HTTP/1.1\r\nHost: {self._host}\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        reader = AnswerReader(self._limits)
        try:
            self._send(head.encode("ascii") + b"\r\n" + (body or b""), patience)
            first = b""
            while reader.head is None:
                first += self.take(reader, patience)
        except BaseException:
            self.close()
            raise
        return EngineAnswer(self, reader, reader.head, first, patience, self._limits)

    def _send(self, data: bytes, patience: Patience) -> None:
        rest, since = memoryview(data), time.monotonic()
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
                since = time.monotonic()
            except BlockingIOError:
                patience.check(since)
            except OSError:
                return  # it may have responded before it closed; if not, reading fails

    def take(self, reader: AnswerReader, patience: Patience | None) -> bytes:
        """Waits for bytes, passes them to `reader` and returns the body's part. Without patience it does not wait.

        Raises EngineFailed, ConnectionLost, Cancelled.
        """
        since = time.monotonic()
        while True:
            try:
                data = self._socket.recv(_READ, 0 if patience else socket.MSG_DONTWAIT)
                break
            except BlockingIOError:
                if patience is None:
                    return b""
                patience.check(since)
            except OSError:  # reset
                if reader.begun:
                    raise broken("the connection was reset within it") from None
                data = b""
                break
        if data:
            return reader.take(data)
        if not reader.begun:
            raise ConnectionLost("llama-server closed the connection without an answer")
        reader.ended()
        return b""

    def fileno(self) -> int:
        return self._socket.fileno()


class EngineAnswer:
    """A response whose head has been read, and the `first` bytes of its body. Call `settle` at the end."""

    def __init__(
        self,
        connection: EngineConnection,
        reader: AnswerReader,
        head: EngineHead,
        first: bytes,
        patience: Patience,
        limits: Limits,
    ) -> None:
        self.head = head
        self.first = first
        self.connection = connection
        self._reader = reader
        self._patience = patience
        self._most = limits.engine_body

    @property
    def complete(self) -> bool:
        return self._reader.complete

    def wait(self) -> bytes:
        """Waits for more of the body. Raises EngineFailed, Cancelled."""
        return self.connection.take(self._reader, self._patience)

    def pull(self) -> bytes:
        """Further bytes of the body that were received already. Raises EngineFailed."""
        return self.connection.take(self._reader, None)

    def read_all(self) -> bytes:
        """The complete body; calls `settle`. Raises EngineFailed, also for a body beyond the limit, and Cancelled."""
        parts, size = [self.first], len(self.first)
        try:
            while not self.complete:
                parts.append(self.wait())
                size += len(parts[-1])
                if size > self._most:
                    raise broken(f"its body is longer than {self._most} bytes")
        finally:
            self.settle()
        return b"".join(parts)

    def settle(self) -> None:
        """Closes the connection unless the response was read to its end and the engine keeps it open."""
        if not (self.complete and self.head.keeps_open):
            self.connection.close()


class Upstream:
    """The engine's address and the open connections to it. `address` is (host, port), the host an IP address."""

    def __init__(self, address: SocketName, limits: Limits) -> None:
        self.address = address
        self.limits = limits
        host, port = address
        self.shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._lock = threading.Lock()
        self._kept: list[tuple[float, EngineConnection]] = []  # oldest first

    def connect(self) -> EngineConnection:
        """A new connection. Raises EngineFailed."""
        try:
            connected = socket.create_connection(self.address, _CONNECT)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise EngineFailed(f"llama-server at {self.shown} cannot be reached: {why}") from None
        return EngineConnection(connected, self.shown, self.limits)

    def take(self) -> EngineConnection:
        """The most recently used idle connection, else a new one. An idle one may be closed by now: see its `kept`."""
        with self._lock:
            self._close_old()
            if self._kept:
                return self._kept.pop()[1]
        return self.connect()

    def give_back(self, connection: EngineConnection) -> None:
        """Returns `connection` to the pool, if its last response left it open."""
        if not connection.open:
            return
        with self._lock:
            self._close_old()
            if len(self._kept) < self.limits.engine_kept:
                connection.kept = True
                self._kept.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            for _, connection in self._kept:
                connection.close()
            self._kept.clear()

    def _close_old(self) -> None:
        oldest = time.monotonic() - self.limits.engine_idle
        while self._kept and self._kept[0][0] < oldest:
            self._kept.pop(0)[1].close()
