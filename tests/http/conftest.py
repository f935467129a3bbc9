"""A server over real sockets, with an application whose routes behave in the ways an answer can behave."""

import asyncio
import contextlib
import importlib.util
import io
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from bankml.http import server
from bankml.http.api_keys import ApiKeys
from bankml.http.cors import AllowedOrigins
from bankml.http.exchange import RequestOutcome
from bankml.http.limits import Limits
from tests.upstream.front import in_front, native

LOOPS = [
    "asyncio",
    pytest.param("uvloop", marks=pytest.mark.skipif(not importlib.util.find_spec("uvloop"), reason="no uvloop")),
]


@dataclass
class Trial:
    """The application: what it was asked, and what became of the answers that wait or stream."""

    requests: list = field(default_factory=list)
    cancelled_after: list = field(default_factory=list)
    write_failed: threading.Event = field(default_factory=threading.Event)
    written: int = 0
    release: threading.Event = field(default_factory=threading.Event)
    model: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request, reply):
        self.requests.append(request)
        return getattr(self, "get" + request.path.replace("/", "_").replace("-", "_"), self.get_)(request, reply)

    def get_(self, request, reply):
        reply.whole(200, b'{"path": "%s", "body": %d}' % (request.path.encode(), len(request.body)))
        return RequestOutcome(200, prompt_tokens=3, cached_tokens=1, completion_tokens=2, note="stop")

    def get_echo(self, request, reply):
        reply.whole(200, request.body, "application/octet-stream")
        return RequestOutcome(200)

    def get_big(self, request, reply):
        reply.whole(200, b"x" * int(request.query), "application/octet-stream")
        return RequestOutcome(200)

    def get_stream(self, request, reply):
        reply.start(200, "text/event-stream")
        for number in range(int(request.query or 5)):
            reply.write(b"data: %d\n\n" % number)
        reply.finish()
        return RequestOutcome(200)

    def get_slow_stream(self, request, reply):
        reply.start(200, "text/event-stream")
        while not reply.cancelled():
            if not reply.write(b"data: tick\n\n"):
                self.write_failed.set()
                break
            time.sleep(0.02)
        reply.finish()
        return RequestOutcome(200)

    def get_flood(self, request, reply):
        reply.start(200, "application/octet-stream")
        while reply.write(b"x" * 65536):
            self.written += 65536
        self.write_failed.set()
        return RequestOutcome(499)

    def get_drip(self, request, reply):
        """64 KiB every 20 ms, until the client is gone."""
        reply.start(200, "application/octet-stream")
        while reply.write(b"x" * 65536):
            time.sleep(0.02)
        self.write_failed.set()
        return RequestOutcome(499)

    def get_model(self, request, reply):
        """`?N` events of 1,000 bytes, computed under the one lock of a model."""
        with self.model:
            reply.start(200, "text/event-stream")
            for _ in range(int(request.query)):
                if not reply.write(b"data: " + b"x" * 992 + b"\n\n"):
                    self.write_failed.set()
                    return RequestOutcome(499, completion_tokens=1)
            reply.finish()
        return RequestOutcome(200)

    def get_silent_stream(self, request, reply):
        """The head at once, then nothing until released, then two events; pings every 50 ms."""
        reply.start(200, "text/event-stream", 0.05)
        self.release.wait(10)
        reply.write(b"data: 1\n\n")
        reply.write(b"data: 2\n\n")
        reply.finish()
        return RequestOutcome(200)

    def get_wait(self, request, reply):
        """Computes silently until the client leaves, or until released."""
        begun = time.monotonic()
        while not self.release.is_set():
            if reply.cancelled():
                self.cancelled_after.append(time.monotonic() - begun)
                return RequestOutcome(499)
            time.sleep(0.01)
        reply.whole(200, b'"waited"')
        return RequestOutcome(200)

    def get_memory(self, request, reply):
        raise MemoryError

    def get_memory_midway(self, request, reply):
        reply.start(200, "text/event-stream")
        reply.write(b"data: 1\n\n")
        raise MemoryError

    def get_crash(self, request, reply):
        raise ValueError("the secret words of a message")

    def get_crash_midway(self, request, reply):
        reply.start(200, "text/event-stream")
        reply.write(b"data: 1\n\n")
        raise ValueError("the secret words of a message")

    def get_nothing(self, request, reply):
        return RequestOutcome(200)

    def get_bad_header(self, request, reply):
        reply.whole(200, b"{}", headers=[("X", "a\r\nb: c")])
        return RequestOutcome(200)


@dataclass
class Served:
    """A running server and how to talk to it with raw bytes."""

    trial: Trial
    listening: server.Listening
    log: io.StringIO
    thread: threading.Thread

    def connect(self, address: str = "gateway", timeout: float = 5.0) -> socket.socket:
        return socket.create_connection(getattr(self.listening, address), timeout=timeout)

    def talk(self, data: bytes, address: str = "gateway", end: bool = False) -> bytes:
        """Sends everything first, then reads until the server ends the connection."""
        with self.connect(address) as client:
            client.sendall(data)
            if end:
                client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def lines(self, count: int, within: float = 2.0) -> list[str]:
        """The first `count` lines of the log."""
        until = time.monotonic() + within
        while self.log.getvalue().count("\n") < count and time.monotonic() < until:
            time.sleep(0.005)
        return self.log.getvalue().splitlines()


def read_all(client: socket.socket) -> bytes:
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


@contextlib.contextmanager
def running(
    limits: Limits | None = None,
    engine: bool = True,
    host: str = "127.0.0.1",
    api_keys: ApiKeys | None = None,
    origins: AllowedOrigins | None = None,
) -> Iterator[Served]:
    trial, log, found = Trial(), io.StringIO(), []
    up = threading.Event()

    def ready(listening: server.Listening) -> None:
        found.append(listening)
        up.set()

    def run() -> None:
        at_engine = (host, 0) if engine else None
        rules = {"limits": limits, "api_keys": api_keys, "origins": origins}
        server.serve(trial, (host, 0), at_engine, ready=ready, log=log, **rules)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert up.wait(5)
    try:
        yield Served(trial, found[0], log, thread)
    finally:
        trial.release.set()
        found[0].stop()
        thread.join(6)
        assert not thread.is_alive(), "the server did not end"


@pytest.fixture(params=LOOPS)
def event_loop_kind(request, monkeypatch):
    if request.param == "asyncio":
        monkeypatch.setattr(server, "_new_loop", asyncio.new_event_loop)
    return request.param


@pytest.fixture
def serving(event_loop_kind):
    """`with serving(Limits(...)) as served`: a server for one test."""
    return running


@pytest.fixture(scope="module")
def served():
    """One server with the ordinary limits for a module's tests."""
    with running() as served:
        yield served


@pytest.fixture(scope="module", params=[in_front, native])
def answering(request, tmp_path_factory):
    """A server that answers chats, as a `front.Served`: in front of a stand-in, then bankML's own."""
    with request.param(tmp_path_factory.mktemp("answering")) as served:
        yield served


@pytest.fixture
def read():
    return read_all
