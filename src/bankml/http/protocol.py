"""Connects a socket to its `wire.Connection`: passes asyncio's events in and performs the connection's actions."""

import asyncio
import contextlib
import fcntl
import math
import socket
import struct
import sys
import termios
import time
from functools import partial
from typing import cast

import h11

from bankml.errors import OutOfMemory
from bankml.http.cors import preflight_answer
from bankml.http.exchange import CompleteResponse, Request, RequestOutcome
from bankml.http.gateway import Gateway
from bankml.http.hangup import still_reads
from bankml.http.log import AccessLogEntry
from bankml.http.pings import PING, Pings
from bankml.http.relay import Relay
from bankml.http.reply import WireReply
from bankml.http.rules import error_body
from bankml.http.wire import (
    Action,
    Address,
    CloseAction,
    Connection,
    ConnectionState,
    DispatchRequest,
    RequestRejected,
    Send,
)
from bankml.http.workers import answer

_STALL_CHECKS = 10  # how often within `write_pause` the progress of sending is checked
_HANGUP_CHECK = 0.1  # seconds between checks of a client that has closed its sending side and waits
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s


class ClientProtocol(asyncio.Protocol):
    """One client. It is removed from the gateway when its socket is closed and no worker works for it any more."""

    def __init__(self, gateway: Gateway, address: Address) -> None:
        self._gateway = gateway
        self._address: Address = address
        self._loop = asyncio.get_running_loop()
        self._reply: WireReply | None = None
        self._answer_ended = False
        self._write_paused = False
        self._read_paused = False
        self._watch: asyncio.TimerHandle | None = None
        self._lost = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._pings: Pings | None = None
        self._written = 0  # bytes given to the transport
        self._acknowledged = 0  # of these, those the client had received at `_progress`
        self._progress = 0.0

    # ---- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._names = tuple(transport.get_extra_info(name) for name in ("sockname", "peername"))
        busy = self._gateway.admit(self)
        self._connection = Connection(
            self._address,
            self._gateway.limits,
            time.monotonic(),
            busy,
            self._gateway.api_keys,
            self._gateway.origins,
        )
        if len(self._gateway.excess) > self._gateway.limits.excess:
            self._abort()
            return
        self._arm()

    def data_received(self, data: bytes) -> None:
        self._perform(self._connection.received(data, time.monotonic()))

    def eof_received(self) -> bool:
        self._perform(self._connection.ended(time.monotonic()))
        self._watch_for_hangup()
        return True  # we close it ourselves

    def pause_writing(self) -> None:
        self._write_paused = True
        self._regulate_relay()

    def resume_writing(self) -> None:
        self._write_paused = False
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._stop_pings()
        if self._timer is not None:
            self._timer.cancel()
        if self._reply is None:
            self._gateway.forget(self)
        else:
            self._reply.leave()
            self._regulate_relay()
            self._look()

    # ---- called by the server

    @property
    def idle_since(self) -> float:
        """Since when the connection is idle (time.monotonic), infinite while it is not.

        Bytes in the kernel's buffers count too: with a received request that is not read yet, closing the socket would
        reset the connection, and the client would lose what it has not read of its last response."""
        idle = self._connection.state is ConnectionState.IDLE and self._reply is None
        return self._connection.idle_since if idle and not self._unread() and not self._unsent_bytes() else math.inf

    def stop(self) -> None:
        self._perform(self._connection.stop(time.monotonic(), bool(self._unread())))

    def abort(self) -> None:
        self._abort()

    # ---- actions

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._write(action.data)
            elif isinstance(action, DispatchRequest):
                self._begin_answer(action)
            elif isinstance(action, RequestRejected):
                self._log_refusal(action)
            elif action is CloseAction.HALF_CLOSE:
                self._half_close()
            elif action is CloseAction.CLOSE:
                self._transport.close()
            else:
                self._abort()
        self._regulate_reading()
        self._arm()

    def _write(self, data: bytes) -> None:
        if self._transport.is_closing() or not data:
            return
        now = time.monotonic()
        if self._transport.get_write_buffer_size() == 0:
            self._acknowledged, self._progress = self._written, now
        self._written += len(data)
        self._transport.write(data)

    def _half_close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # the client may be gone already
            self._transport.write_eof()

    def _abort(self) -> None:
        """Resets the connection: the client sees an abnormal end, and the kernel discards what is unsent."""
        if self._lost:
            return
        raw = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed already
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._transport.abort()

    def _regulate_reading(self) -> None:
        full = self._connection.full
        if full == self._read_paused or self._transport.is_closing():
            return
        self._read_paused = full
        if full:
            self._transport.pause_reading()
            self._watch_for_hangup()
        else:
            self._transport.resume_reading()

    def _log_refusal(self, refused: RequestRejected) -> None:
        line = RequestOutcome(refused.error.status, note=f"refused: {refused.error.kind}")
        seconds = time.monotonic() - refused.arrived
        self._gateway.refused(line.status)
        self._gateway.log.write(
            AccessLogEntry(self._address, refused.method, refused.path, refused.size, seconds, line)
        )

    # ---- answering

    def _begin_answer(self, action: DispatchRequest) -> None:
        gateway = self._gateway
        if known := self._known(action.request):
            self._answer_at_once(action.request, *known)
            return
        reply = WireReply(self._wake, gateway.is_stopping, gateway.limits.backlog)
        self._reply, self._answer_ended = reply, False
        try:
            gateway.workers.run(partial(answer, gateway.application, action.request, reply, gateway.log))
        except OutOfMemory as error:
            self._reply = None
            body = error_body(error, action.request.path, self._address)
            outcome = RequestOutcome(error.status, note="out of memory")
            self._answer_at_once(action.request, CompleteResponse(error.status, body), outcome)

    def _known(self, request: Request) -> tuple[CompleteResponse, RequestOutcome] | None:
        """The response that needs no worker; None too while the client does not read."""
        if request.method == "OPTIONS":  # the rules let only an allowed preflight through
            return preflight_answer(request), RequestOutcome(200)
        if self._write_paused:
            return None
        try:
            return self._gateway.at_once(request)
        except Exception:  # a defect: the application meets it too and logs it
            return None

    def _answer_at_once(self, request: Request, response: CompleteResponse, line: RequestOutcome) -> None:
        connection, now = self._connection, time.monotonic()
        head = connection.begin(response.status, response.content_type, response.headers, len(response.body))
        actions = [Send(head + connection.body(response.body)), *connection.end(now)]
        if connection.pipelined:  # in a later iteration of the loop, so that this client does not delay others
            self._loop.call_soon(self._advance)
        else:
            actions += connection.advance(now)
        self._perform(actions)
        size = 0 if request.method == "HEAD" else len(response.body)
        self._gateway.log.write(
            AccessLogEntry(request.address, request.method, request.path, size, now - request.arrived, line)
        )

    def _advance(self) -> None:
        if not self._lost:
            self._perform(self._connection.advance(time.monotonic()))

    def _wake(self) -> None:
        """Schedules `_look` on the loop; called by the worker."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
            self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        reply = self._reply
        if reply is None:
            return
        if reply.overflowed and not self._lost:
            self._abort()
        elif self._lost:
            if reply.take().returned:
                self._reply = None
                self._gateway.forget(self)
        elif not self._write_paused:
            try:
                self._forward(reply)
            except h11.LocalProtocolError as error:  # the application's response cannot be encoded as HTTP
                self._gateway.log.say(f"a response was aborted: {type(error).__name__}")
                self._abort()
        self._regulate_relay()

    def _regulate_relay(self) -> None:
        """Reads from the relay only while its bytes can be sent at once (back-pressure)."""
        reply = self._reply
        relay = reply.relayed if reply is not None else None
        if reply is None or relay is None:
            return
        if self._lost or reply.cancelled():
            relay.end()
        elif relay.expired:
            relay.expire()
        elif self._write_paused:
            relay.pause()
        else:
            relay.resume(self._loop, partial(self._pass_on, reply, relay))

    def _pass_on(self, reply: WireReply, relay: Relay) -> None:
        if data := reply.pull(relay):
            self._write(self._connection.body(data))
            if self._transport.get_write_buffer_size():
                self._arm()
        relay.sent()

    def _forward(self, reply: WireReply) -> None:
        part = reply.take()
        now = time.monotonic()
        connection = self._connection
        if self._answer_ended:
            actions: list[Action] = []
        else:
            head = part.head
            begun = connection.begin(head.status, head.content_type, head.headers, head.length) if head else b""
            actions = [Send(begun + connection.body(part.data))]
            if head and head.ping_interval:
                self._pings = Pings(self._loop, head.ping_interval, self._send_ping)
            if part.data and self._pings:
                self._pings.postpone()
            if part.complete:
                self._answer_ended = True
                self._stop_pings()
                actions += connection.end(now)
        if part.returned:
            self._stop_pings()
            self._reply = None
            actions += [CloseAction.ABORT] if part.broken else connection.advance(now)
        self._perform(actions)

    def _send_ping(self) -> None:
        """A comment between two events, for a client that takes what it is sent."""
        if not (self._lost or self._answer_ended or self._write_paused):
            self._write(self._connection.body(PING))
            self._arm()

    def _stop_pings(self) -> None:
        if self._pings is not None:
            self._pings.stop()
            self._pings = None

    def _watch_for_hangup(self) -> None:
        """Polls whether a client that has closed its sending side, or is not read from, still waits."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        ended = self._connection.client_ended
        if self._lost or self._reply is None or not (ended or self._read_paused):
            return
        ours, theirs = self._names
        reads = still_reads(ours[:2], theirs[:2]) if ours and theirs else None
        if reads is False or (reads is None and ended):
            self._abort()
        else:
            self._watch = self._loop.call_later(_HANGUP_CHECK, self._watch_for_hangup)

    # ---- deadlines

    def _arm(self) -> None:
        """Sets the timer to the next deadline. A timer that is due earlier stays and looks again, so few are made."""
        due = self._connection.deadline
        if self._transport.get_write_buffer_size():
            check = time.monotonic() + self._gateway.limits.write_pause / _STALL_CHECKS
            due = check if due is None else min(due, check)
        if due is None or self._lost or (self._timer is not None and self._timer_due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = time.monotonic()
        unsent = self._unsent_bytes()
        if unsent and self._stalled(unsent, now):
            self._abort()
            return
        if self._connection.deadline is not None and self._connection.deadline <= now:
            self._perform(self._connection.expired(now, bool(unsent)))
        self._arm()

    def _unsent_bytes(self) -> int:
        """Bytes not yet received by the client: those in the transport and in the kernel's send queue. A socket becomes
        writable only when a third of the kernel's megabytes has been sent, so without the latter a slow reader would
        look like one that reads nothing."""
        return self._transport.get_write_buffer_size() + self._in_kernel(termios.TIOCOUTQ)

    def _unread(self) -> int:
        """Bytes received by the kernel and not read yet."""
        return self._in_kernel(termios.FIONREAD)

    def _in_kernel(self, queue: int) -> int:
        raw = self._transport.get_extra_info("socket")
        queued = bytearray(4)
        with contextlib.suppress(OSError, ValueError):
            fcntl.ioctl(raw.fileno(), queue, queued)
        return int.from_bytes(queued, sys.byteorder)

    def _stalled(self, unsent: int, now: float) -> bool:
        acknowledged = self._written - unsent
        if acknowledged != self._acknowledged:
            self._acknowledged, self._progress = acknowledged, now
        return now - self._progress >= self._gateway.limits.write_pause
