"""Servers for tests, over real sockets: a gateway in front of a stand-in for llama-server, and a native one.

The fixture `answering` is both, one after the other.
"""

import contextlib
import io
import os
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

from bankml.api.metrics_middleware import MetricsMiddleware
from bankml.gate.identity import FileIdentity
from bankml.gate.verify import Verified
from bankml.http import server
from bankml.http.limits import Limits
from bankml.measure.usage import Watched
from bankml.receipt.issuer import UNSIGNED
from bankml.upstream.client import Upstream
from bankml.upstream.proxy import Proxy
from bankml.upstream.verifier import EngineVerifier
from tests.end_to_end.servers import free_port, waiting
from tests.tiny_model import tiny_model
from tests.upstream.standin import StandIn

BODY = b'{"messages":[{"role":"user","content":"Say hello."}], "max_tokens":4}'
STREAMED = b'{"messages":[{"role":"user","content":"Say hello."}], "stream":true}'


class House:
    """A verified file, a stand-in that serves it, and a gateway in front."""

    def __init__(self, path, limits=None, contents=b"weights", verified=None, issuer=UNSIGNED, **standin):
        if not path.exists():
            path.write_bytes(contents)
        self.verified = verified
        self.issuer = issuer
        self.path = path
        self.standin = StandIn(str(path), **standin)
        self.limits = limits or Limits()
        self.log = io.StringIO()

    def __enter__(self):
        found, up = [], threading.Event()
        self.upstream = Upstream(self.standin.start(), self.limits)
        verdict = SimpleNamespace(kind="play", name=self.path.name)
        path = str(self.path)
        verified = Verified(path, "ab" * 32, verdict, None, FileIdentity.of(path), path, 0.0)
        verified = self.verified() if self.verified else verified
        proxy = Proxy(EngineVerifier(verified, self.upstream, lambda: None), self.issuer)
        measured = MetricsMiddleware(proxy, [Watched("gateway", os.getpid())])

        def ready(listening):
            found.append(listening)
            up.set()

        def run():
            server.serve(
                measured, ("127.0.0.1", 0), limits=self.limits, ready=ready, log=self.log, refused=measured.refused
            )

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        assert up.wait(5)
        self.listening = found[0]
        self.port = self.listening.gateway[1]
        return self

    def __exit__(self, *_):
        self.listening.stop()
        self.thread.join(6)
        self.upstream.close()
        self.standin.stop()
        assert not self.thread.is_alive()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def ask(self, method="GET", path="/health", body=None, headers=""):
        """(status, headers in lower case, body) of one request on a connection of its own."""
        with self.connect() as client:
            client.sendall(question(method, path, body, headers))
            return read_answer(client)

    def chat(self, body=BODY):
        status, _, got = self.ask("POST", "/v1/chat/completions", body)
        return status, got


def question(method, path, body=None, headers=""):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + (body or b"")


def read_answer(client):
    reading = client.makefile("rb")
    status = int(reading.readline().split()[1])
    headers = {}
    while line := reading.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    if "content-length" in headers:
        return status, headers, reading.read(int(headers["content-length"]))
    body = b""
    while size := int(reading.readline(), 16):
        body += reading.read(size)
        assert reading.readline() == b"\r\n"
    return status, headers, body


class Served:
    """A server's port and its log."""

    def __init__(self, port, log):
        self.port = port
        self._log = log
        self._seen = 0

    def url(self, path, host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def news(self, count):
        """The log's next `count` lines, without times: method, path, status."""
        until = time.monotonic() + 10
        while len(lines := self._requests()) < self._seen + count and time.monotonic() < until:
            time.sleep(0.01)
        new, self._seen = lines[self._seen :], len(lines)
        return [" ".join(line.split()[2:5]) for line in new]

    def _requests(self):
        return [line for line in self._log().splitlines() if " gateway " in line and "/favicon.ico" not in line]


@contextlib.contextmanager
def in_front(folder):
    with House(folder / "m.gguf") as house:
        yield Served(house.port, house.log.getvalue)


@contextlib.contextmanager
def native(folder):
    model, log, ports = tiny_model(folder).path, folder / "log", (free_port(), free_port())
    addresses = [f"--{name}=127.0.0.1:{port}" for name, port in zip(("listen", "upstream"), ports, strict=True)]
    words = [sys.executable, "-m", "bankml", "serve", model, "--native", "--ctx=256", "--threads=1", *addresses]
    with open(log, "wb") as out, subprocess.Popen(words, stderr=out) as process:
        try:
            waiting(ports[0], process)
            served = Served(ports[0], log.read_text)
            served.news(1)
            yield served
        finally:
            process.terminate()
