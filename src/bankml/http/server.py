"""The HTTP server: two loopback addresses, one event loop, a shutdown within five seconds."""

import asyncio
import atexit
import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from bankml.errors import UsageError
from bankml.http.api_keys import ApiKeys
from bankml.http.cors import AllowedOrigins
from bankml.http.exchange import Application, AtOnce
from bankml.http.gateway import Gateway
from bankml.http.limits import Limits
from bankml.http.log import RequestLog
from bankml.http.loop_errors import LoopErrors
from bankml.http.protocol import ClientProtocol
from bankml.http.wire import Address
from bankml.http.workers import Workers

SocketName = tuple[str, int]
LISTENING_HOSTS = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1", "[::1]": "::1"}
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_ACCEPT_QUEUE = 128
_SETTLING = 0.2  # seconds for workers whose responses are complete to write their log lines


@dataclass(frozen=True)
class Listening:
    """Where a server listens, with the actual ports where 0 was given. `stop` may be called from any thread."""

    gateway: SocketName
    engine: SocketName | None
    stop: Callable[[], None]


def serve(
    application: Application,
    listen: SocketName,
    engine: SocketName | None = None,
    *,
    limits: Limits | None = None,
    ready: Callable[[Listening], None] | None = None,
    log: TextIO | None = None,
    refused: Callable[[int], object] = lambda status: None,
    at_once: AtOnce = lambda request: None,
    api_keys: ApiKeys | None = None,
    origins: AllowedOrigins | None = None,
) -> int:
    """Serves requests at `listen` and, as the engine address, at `engine`, until SIGTERM, SIGINT, SIGHUP or `stop`.

    Each is (host, port); the host is 127.0.0.1, localhost or ::1, port 0 takes any free one. `ready` is called once
    both accept. Log lines go to `log`, by default stderr; `refused` is called with the status of each request that
    breaks an HTTP rule and so does not reach the application, and `at_once`, on the event loop, before the application.
    With `api_keys` every request but those to /health needs one of them; pages of `origins` may use the server.
    Signals are handled only when this is called from the main thread. Returns 0 within five seconds of the first
    signal, at once after a second; if a response could not be stopped in time, the process's exit does not wait for its
    thread either (see `_leave_if_busy`).

    Raises UsageError if an address cannot be bound.
    """
    limits = limits or Limits()
    workers = Workers()
    gateway = Gateway(application, limits, RequestLog(log or sys.stderr), workers, refused, at_once, api_keys, origins)
    with contextlib.ExitStack() as stack:
        sockets: dict[Address, socket.socket] = {"gateway": stack.enter_context(_listen(*listen))}
        if engine is not None:
            sockets["engine"] = stack.enter_context(_listen(*engine))
        loop = _new_loop()
        stack.callback(loop.close)
        loop.set_exception_handler(LoopErrors(gateway.log))
        loop.run_until_complete(_run(gateway, sockets, ready))
    if abandoned := workers.settle(_SETTLING):
        gateway.log.say(f"stopped; {abandoned} unfinished responses were abandoned")
        if threading.current_thread() is threading.main_thread():
            atexit.register(_leave_if_busy, workers)
    return 0


async def _run(
    gateway: Gateway, sockets: dict[Address, socket.socket], ready: Callable[[Listening], None] | None
) -> None:
    loop = asyncio.get_running_loop()
    stop = _Stop()
    if threading.current_thread() is threading.main_thread():
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop.request)
    # With a backlog of 1 asyncio accepts one connection at a time, and pauses for a second when it has no descriptor
    # for it; with more it would try, and report, as often for each. The kernel's queue is set to its size again.
    servers = [
        await loop.create_server(partial(ClientProtocol, gateway, address), sock=sock, backlog=1)
        for address, sock in sockets.items()
    ]
    for sock in sockets.values():
        sock.listen(_ACCEPT_QUEUE)
    if ready is not None:
        names = {address: sock.getsockname()[:2] for address, sock in sockets.items()}
        ready(Listening(names["gateway"], names.get("engine"), partial(_request_from_outside, loop, stop)))
    await stop.requested.wait()
    for server in servers:
        server.close()
    gateway.stopping = True
    for client in [*gateway.admitted, *gateway.excess]:
        client.stop()
    await _first_of(gateway.empty, stop.requested_again, gateway.limits.grace)
    for client in [*gateway.admitted, *gateway.excess]:
        client.abort()
    await asyncio.sleep(0)  # lets the closed connections wake their workers


class _Stop:
    """Whether shutdown was requested, and whether a second time."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.requested_again = asyncio.Event()

    def request(self) -> None:
        (self.requested_again if self.requested.is_set() else self.requested).set()


def _request_from_outside(loop: asyncio.AbstractEventLoop, stop: _Stop) -> None:
    with contextlib.suppress(RuntimeError):  # it has stopped already
        loop.call_soon_threadsafe(stop.request)


async def _first_of(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in (one, other)]
    await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def require_free(*addresses: SocketName) -> None:
    """Raises UsageError for the first address that `serve` could not bind now: to be checked before long work."""
    for address in addresses:
        _listen(*address).close()


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises UsageError for a host that is not loopback and for an address that cannot be bound."""
    literal = LISTENING_HOSTS.get(host)
    if literal is None:
        raise UsageError(f"the address to listen at must be 127.0.0.1, localhost or [::1], not {host}")
    shown = f"{host}:{port}"
    if not 0 <= port <= 65535:
        raise UsageError(f"{shown}: the port must be a number from 0 to 65535")
    family = socket.AF_INET6 if ":" in literal else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((literal, port))
        listening.listen(_ACCEPT_QUEUE)
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen at {shown}: {os.strerror(error.errno or 0)}") from None
    listening.setblocking(False)
    return listening


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's event loop where that is installed, else asyncio's own."""
    try:
        loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
    except ImportError:
        return asyncio.new_event_loop()
    return loop


def _leave_if_busy(workers: Workers) -> None:
    """Ends the process here if a worker is still inside native code: unwinding its thread there would abort the
    process. Exit handlers registered before `serve` are not run then."""
    if workers.busy:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
