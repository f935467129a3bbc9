"""What the gateway adds in front of llama-server: to /health, to a chat answered whole, and to each event of a stream.

    python benchmarks/proxy.py [--requests 2000] [--streams 60] [--events 50] [--loop asyncio|uvloop]

The engine is a stand-in that answers at once with prepared bytes, so that only the gateway is measured. Stand-in,
gateway and this client are three processes; client connections are kept alive. Requests alternate between straight to
the stand-in and through the gateway; printed are the medians and what the gateway adds. An event carries the time it
was written (one clock for all processes), its delay is that of its arrival; events come every 2 ms. The targets: at
most 0.7 ms added to /health and to a chat, at most 0.1 ms to an event.

Streams alternate with a third way, a bare relay: a Python process that receives and sends, and looks at nothing. It is
what any process between the two costs here and now; a busy machine adds to it as it adds to the gateway.

Before every answer the gateway asks the stand-in for /props, so each of these medians holds one more of the
stand-in's answers than the direct one.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVE = """
import asyncio, importlib.util, sys
from dataclasses import dataclass
from bankml.http import server
from bankml.http.limits import Limits
from bankml.upstream.proxy import Proxy
from bankml.upstream.client import Upstream
from bankml.upstream.verifier import EngineVerifier
from bankml.gate.verify import Verified
from bankml.gate.identity import FileIdentity
from types import SimpleNamespace

path, port, loop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if loop == "asyncio":
    server._new_loop = asyncio.new_event_loop
verdict = SimpleNamespace(kind="play", name="m.gguf")
verified = Verified(path, "0" * 64, verdict, None, FileIdentity.of(path), path, 0.0)
proxy = Proxy(EngineVerifier(verified, Upstream(("127.0.0.1", port), Limits()), lambda: None))
server.serve(proxy, ("127.0.0.1", 0), ready=lambda listening: print(listening.gateway[1], flush=True))
"""
STANDIN = """
import sys, time
sys.path.insert(0, {root!r})
from tests.upstream.standin import DONE, ROLE, STREAM_HEAD, WHOLE, StandIn, answer, chunk, delta
def chat(asked, write):
    if b'"stream"' not in asked.body:
        write(answer(WHOLE))
        return
    write(STREAM_HEAD)
    for _ in range({events}):
        time.sleep(0.002)
        write(chunk(delta("%d." % time.perf_counter_ns())))
    write(chunk(DONE))
    write(chunk(b""))
print(StandIn(sys.argv[1], chat=chat).start()[1], flush=True)
time.sleep(3600)
"""
BARE = """
import select, socket, sys
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    client, _ = listening.accept()
    with client, socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as engine:
        for one in (client, engine):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        other = {client: engine, engine: client}
        while all(other[one].send(one.recv(65536)) for one in select.select([client, engine], [], [])[0]):
            pass
"""
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
QUESTION = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}


def post(**more: object) -> bytes:
    body = json.dumps(QUESTION | more).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Client:
    """One kept-alive connection, opened anew when the server ends it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def _connect(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def whole(self, question: bytes) -> float:
        """Seconds from the question's first byte to the answer's last."""
        connected = self._connect()
        begun = time.perf_counter()
        connected.sendall(question)
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0:
            got += connected.recv(65536)
        length = int(got[:end].lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(got) < end + 4 + length:
            got += connected.recv(65536)
        took = time.perf_counter() - begun
        if b"connection: close" in got[:end].lower():
            connected.close()
            self._socket = None
        return took

    def stream(self, question: bytes) -> list[float]:
        """Of each event, the seconds from its writing to its arrival."""
        connected = self._connect()
        connected.sendall(question)
        delays, got = [], b""
        while not got.endswith(b"\r\n0\r\n\r\n"):  # a head may end in max=100
            data = connected.recv(65536)
            now = time.perf_counter_ns()
            delays += [(now - int(piece.split(b".")[0])) / 1e9 for piece in data.split(b'"content": "')[1:]]
            got = (got + data)[-16:]
        connected.close()
        self._socket = None
        return delays


def compare(name: str, direct: list[float], through: list[float], target: float) -> None:
    print(f"{name:8} direct p50 {median(direct):.3f} ms; through {shown(through)}; "
          f"added {median(through) - median(direct):.3f} ms (target {target})")  # fmt: skip


def median(times: list[float]) -> float:
    return statistics.median(times) * 1000


def shown(times: list[float]) -> str:
    return f"p50 {median(times):.3f} ms, p99 {statistics.quantiles(times, n=100)[98] * 1000:.3f} ms"


def started(stack: ExitStack, program: str, *words: str) -> int:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    return int(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument(
        "--loop", choices=["asyncio", "default"], default="default", help="default: uvloop if installed"
    )
    options = parser.parse_args()
    with ExitStack() as stack:
        model = stack.enter_context(tempfile.NamedTemporaryFile()).name
        model = str(Path(model).resolve())
        engine = started(stack, STANDIN.format(root=str(ROOT), events=options.events), model)
        gateway = started(stack, SERVE, model, str(engine), options.loop)
        clients = Client(engine), Client(gateway)
        for name, question in (("/health", HEALTH), ("chat", post())):
            times: tuple[list[float], list[float]] = ([], [])
            for number in range(options.requests):
                side = number % 2
                times[side].append(clients[side].whole(question))
            compare(name, *times, target=0.7)
        ways = (*clients, Client(started(stack, BARE, str(engine))))
        delays: tuple[list[float], list[float], list[float]] = ([], [], [])
        for number in range(options.streams):
            delays[number % 3].extend(ways[number % 3].stream(post(stream=True)))
        compare("event", delays[0], delays[1], target=0.1)
        print(f"{'':8} bare relay {shown(delays[2])}; added {median(delays[2]) - median(delays[0]):.3f} ms")
        print("load average " + " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
