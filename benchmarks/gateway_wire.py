"""What the gateway's wire costs: a small answer on a kept-alive connection, and one event of a stream.

    python benchmarks/gateway_wire.py [--requests 2000] [--events 500] [--loop asyncio|uvloop]

Each is measured beside the least that can do the same, in alternating rounds of one run: a thread that reads from a
blocking socket and writes prepared bytes. Printed are medians, their difference and their ratio. The targets: a small
answer in less than 0.5 ms, and less than 0.1 ms added to an event. Client and servers share one interpreter here, so
both figures are upper bounds.
"""

import argparse
import asyncio
import io
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable

from bankml.http import server
from bankml.http.exchange import Reply, Request, RequestOutcome

SMALL = b'{"status":"ok"}'
EVENT = b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"%s"}}],"created":1,"id":"c"}\n\n'
ASK = b"GET /health HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: benchmark\r\n\r\n"
ASK_STREAM = ASK.replace(b"/health", b"/stream")
PREPARED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(SMALL), SMALL)
PAUSE = 0.002  # seconds between two events, about a token's time
STAMP = struct.Struct("<d")


class Application:
    def __init__(self, events: int) -> None:
        self._events = events

    def answer(self, request: Request, reply: Reply) -> RequestOutcome:
        if request.path == "/health":
            reply.whole(200, SMALL)
            return RequestOutcome(200)
        reply.start(200, "text/event-stream")
        send_events(reply.write, self._events)
        reply.finish()
        return RequestOutcome(200)


def send_events(write: Callable[[bytes], object], events: int) -> None:
    for _ in range(events):
        time.sleep(PAUSE)
        write(EVENT % STAMP.pack(time.perf_counter()).hex().encode())


def bare_server(events: int) -> tuple[str, int]:
    """Prepared bytes for every request; events straight from the thread that makes them."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        while got := client.recv(65536):
            if got.startswith(b"GET /health"):
                client.sendall(PREPARED)
            else:
                client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                send_events(client.sendall, events)
                client.close()
                return

    def accept() -> None:
        while True:
            client, _ = listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listening.getsockname()[:2]


def small_answers(address: tuple[str, int], count: int) -> list[float]:
    times = []
    with socket.create_connection(address) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            begun = time.perf_counter()
            client.sendall(ASK)
            client.recv(65536)
            times.append(time.perf_counter() - begun)
    return times


def event_delays(address: tuple[str, int]) -> list[float]:
    """From just before an event was written to its arrival here."""
    delays = []
    with socket.create_connection(address) as client:
        client.sendall(ASK_STREAM.replace(b"HTTP/1.1", b"HTTP/1.0"))
        while got := client.recv(65536):
            now = time.perf_counter()
            for piece in got.split(b'"content":"')[1:]:
                delays.append(now - STAMP.unpack(bytes.fromhex(piece[:16].decode()))[0])
    return delays


def compare(name: str, ours: list[float], bare: list[float]) -> None:
    ours_ms, bare_ms = (statistics.median(times) * 1000 for times in (ours, bare))
    p99 = statistics.quantiles(ours, n=100)[98] * 1000
    print(
        f"{name:14} gateway p50 {ours_ms:.3f} ms, p99 {p99:.3f} ms; bare socket p50 {bare_ms:.3f} ms; "
        f"added {ours_ms - bare_ms:.3f} ms, ratio {ours_ms / bare_ms:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--events", type=int, default=500)
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], help="by default uvloop where it is installed")
    options = parser.parse_args()
    if options.loop == "asyncio":
        server._new_loop = asyncio.new_event_loop
    found: list[server.Listening] = []
    up = threading.Event()

    def ready(listening: server.Listening) -> None:
        found.append(listening)
        up.set()

    def run() -> None:
        server.serve(Application(options.events), ("127.0.0.1", 0), ready=ready, log=io.StringIO())

    threading.Thread(target=run, daemon=True).start()
    up.wait()
    ours, bare = found[0].gateway, bare_server(options.events)
    rounds = 5
    results: dict[str, list[float]] = {name: [] for name in ("small", "small bare", "event", "event bare")}
    for _ in range(rounds):
        results["small"] += small_answers(ours, options.requests // rounds)
        results["small bare"] += small_answers(bare, options.requests // rounds)
        results["event"] += event_delays(ours)
        results["event bare"] += event_delays(bare)
    compare("small answer", results["small"], results["small bare"])
    compare("streamed event", results["event"], results["event bare"])
    found[0].stop()


if __name__ == "__main__":
    main()
