"""How a server is started and ended: addresses, signals, what is running when it ends. In processes of their own."""

import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from bankml.errors import UsageError
from bankml.http.server import require_free, serve

PROGRAM = textwrap.dedent("""
    import atexit, sys, time
    from bankml.http.exchange import RequestOutcome
    from bankml.http.limits import Limits
    from bankml.http.server import serve

    class Application:
        def answer(self, request, reply):
            if request.path == "/stream":
                reply.start(200, "text/event-stream")
                while not reply.cancelled():
                    reply.write(b"data: tick\\n\\n")
                    time.sleep(0.01)
                reply.write(b"data: [DONE]\\n\\n")
                reply.finish()
            elif request.path == "/stuck":
                while True:
                    sum(range(1000))
            else:
                reply.whole(200, b"{}")
            return RequestOutcome(200)

    def ready(listening):
        print(listening.gateway[1], listening.engine[1], flush=True)

    atexit.register(print, "the interpreter ended")
    limits = Limits(grace=1.5)
    sys.exit(serve(Application(), ("127.0.0.1", 0), ("127.0.0.1", 0), limits=limits, ready=ready))
""")


class Process:
    def __init__(self, files: int | None = None) -> None:
        """`files`: how many files it may have open."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: files and resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),  # noqa: PLW1509
        )
        self.ports = [int(word) for word in self.process.stdout.readline().split()]

    def ask(self, path: str) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.ports[0]), timeout=6)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return client

    def end(self, number: int, seconds: float) -> str:
        """Sends the signal; the process must end with 0 within `seconds`. Its stderr."""
        begun = time.monotonic()
        self.process.send_signal(number)
        self.output, errors = self.process.communicate(timeout=10)
        assert time.monotonic() - begun < seconds
        assert self.process.returncode == 0, errors
        return errors


@pytest.fixture
def process():
    process = Process()
    yield process
    process.process.kill()
    process.process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_end_it_while_answers_run(process, number):
    streaming = process.ask("/stream")
    assert b"200 OK" in streaming.recv(65536)
    silent = socket.create_connection(("127.0.0.1", process.ports[1]))
    half = socket.create_connection(("127.0.0.1", process.ports[0]))
    half.sendall(b"GET / HTTP/1.1\r\nHost: loc")
    kept_alive = process.ask("/x")
    kept_alive.recv(65536)
    errors = process.end(number, 2.0)
    rest = b""
    while part := streaming.recv(65536):
        rest += part
    assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), "the stream was ended in order"
    assert half.recv(65536).startswith(b"HTTP/1.1 503 ")
    assert silent.recv(1) == b"" and kept_alive.recv(1) == b""
    assert "Traceback" not in errors and len(errors.splitlines()) == 3, errors
    assert process.output == "the interpreter ended\n"


def test_a_worker_that_cannot_be_stopped_holds_nothing(process):
    stuck = process.ask("/stuck")
    time.sleep(0.2)
    errors = process.end(signal.SIGTERM, 4.0)
    assert "1 unfinished responses were abandoned" in errors and "Traceback" not in errors
    assert process.output == "", "threads in native code would have been unwound"
    with pytest.raises(ConnectionResetError):
        stuck.recv(1)


def test_no_descriptor_for_a_connection_is_logged_once_and_counted():
    process = Process(files=24)
    try:
        many = [socket.create_connection(("127.0.0.1", process.ports[0]), timeout=6) for _ in range(60)]
        time.sleep(2.5)  # two further attempts, a second apart
        for client in many:
            client.close()
        client = process.ask("/x")
        assert client.recv(65536).startswith(b"HTTP/1.1 200 "), "it accepts again"
        errors = process.end(signal.SIGTERM, 3.0)
    finally:
        process.process.kill()
    said = [line for line in errors.splitlines() if "too many open files" in line]
    assert 1 <= len(said) <= 2 and len(errors.splitlines()) < 10, errors


def test_a_second_signal_ends_it_at_once(process):
    process.ask("/stuck")
    time.sleep(0.2)
    process.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    process.end(signal.SIGINT, 1.5)


def test_a_client_that_takes_nothing_holds_nothing(process):
    process.ask("/stream")  # and never read, never closed
    time.sleep(0.2)
    process.end(signal.SIGTERM, 2.0)


def test_a_log_that_nobody_reads_holds_nothing(process):
    for _ in range(1200):  # each leaves a line of more than a hundred bytes, and a pipe holds 65,536
        with socket.create_connection(("127.0.0.1", process.ports[0]), timeout=6) as client:
            client.sendall(b"GET /%b HTTP/1.1\r\nHost: evil.com\r\n\r\n" % (b"x" * 100))
            assert client.recv(65536).startswith(b"HTTP/1.1 403 ")
    assert b"200 OK" in process.ask("/x").recv(65536)
    errors = process.end(signal.SIGTERM, 2.0)
    assert 300 < errors.count("\n") < 1200


class Nobody:
    def answer(self, request, reply):
        raise NotImplementedError


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "::", "example.com", "127.0.0.2", ""])
def test_only_loopback_is_listened_at(host):
    with pytest.raises(UsageError, match=r"must be 127\.0\.0\.1, localhost or \[::1\]"):
        serve(Nobody(), (host, 0))


def test_a_port_in_use_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen at 127.0.0.1:{port}: Address already in use"):
            serve(Nobody(), ("127.0.0.1", 0), ("127.0.0.1", port))
        with pytest.raises(UsageError, match=rf"cannot listen at localhost:{port}: Address already in use"):
            require_free(("127.0.0.1", 0), ("localhost", port))
    require_free(("127.0.0.1", port))


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_is_a_port(port):
    with pytest.raises(UsageError, match="from 0 to 65535"):
        serve(Nobody(), ("127.0.0.1", port))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may listen at port 1")
def test_a_port_that_is_not_ours():
    with pytest.raises(UsageError, match="Permission denied"):
        serve(Nobody(), ("127.0.0.1", 1))
