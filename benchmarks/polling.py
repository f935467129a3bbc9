"""What polling costs the decode rate: /bankml/usage and /bankml/metrics, each asked for ten times a second.

    python -m benchmarks.polling MODEL.gguf [--rounds 20] [--tokens 64] [--threads N] [--per-second 10]
        [--paths /bankml/usage /bankml/metrics]

Server, poller and this client are three processes; the poller is stopped and continued by signals, so that rounds
differ in nothing else, and speaks HTTP over a bare socket, because what a client takes of the cores for itself is taken
from the model too. A round is one answer of so many tokens left alone and one while polled, in turning order, so that a
busy machine disturbs both alike; a rate is the server's own (`timings.predicted_per_second`). Printed are the medians,
the median of the rounds' ratios with its quartiles, and, because other programs move rates by more than the 1 % that is
the target, what the polling takes of one core: the server's processor time while it is polled and asked nothing else,
and the poller's. MODEL.gguf.FORK.json must be beside it.
"""

import argparse
import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

PATHS = ("/bankml/usage", "/bankml/metrics")
POLLER = """
import socket, sys, threading, time
port, pause = int(sys.argv[1]), 1 / float(sys.argv[2])
def poll(path):
    client = socket.create_connection(("127.0.0.1", port))
    request = f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n".encode()
    while True:
        began = time.monotonic()
        client.sendall(request)
        head, _, body = client.recv(65536).partition(b"\\r\\n\\r\\n")
        missing = int(head.partition(b"Content-Length: ")[2].partition(b"\\r")[0]) - len(body)
        while missing:
            missing -= len(client.recv(65536))
        time.sleep(max(0, pause - (time.monotonic() - began)))
for path in sys.argv[3:]:
    threading.Thread(target=poll, args=(path,), daemon=True).start()
sys.stdin.read()
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serving(model: str, threads: int | None) -> Iterator[int]:
    """`bankml serve` with the model; its port."""
    port, engine = free_port(), free_port()
    words = [sys.executable, "-m", "bankml", "serve", model, "--native", "--ctx", "2048"]
    words += ["--listen", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{engine}"]
    words += [] if threads is None else ["--threads", str(threads)]
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            sys.exit("the server did not start; does MODEL.gguf.FORK.json stand beside the model?")
        yield port
    finally:
        server.terminate()
        server.wait()


class Poller:
    """A process that asks for each of the paths so often, each over a connection of its own."""

    def __init__(self, port: int, per_second: float, paths: Sequence[str]) -> None:
        words = [sys.executable, "-c", POLLER, str(port), str(per_second), *paths]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE)
        time.sleep(2.0)  # it is up, and the first look has loaded what looking needs

    def poll(self, on: bool) -> None:
        self._process.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
        time.sleep(0.3)  # what is under way is over, or the first is

    def spent(self) -> float:
        """Seconds of processor time that it has used."""
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def rate(client: http.client.HTTPConnection, tokens: int) -> float:
    """Tokens a second of one answer, as the server measured them."""
    body = {"prompt": "Once upon a time", "n_predict": tokens, "temperature": 0, "ignore_eos": True}
    client.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(client.getresponse().read())
    if "timings" not in answer:
        sys.exit(f"the server refused: {answer}")
    found: float = answer["timings"]["predicted_per_second"]
    return found


def spent(client: http.client.HTTPConnection) -> float:
    """Seconds of processor time that the server has used."""
    client.request("GET", "/metrics")
    found = re.search(rb"^process_cpu_seconds_total (\S+)$", client.getresponse().read(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def shares_of_a_core(client: http.client.HTTPConnection, poller: Poller, seconds: float = 10.0) -> tuple[float, float]:
    """What the server and the poller use of one core now."""
    began, before = time.monotonic(), (spent(client), poller.spent())
    time.sleep(seconds)
    after, passed = (spent(client), poller.spent()), time.monotonic() - began
    server, asking = ((late - early) / passed for early, late in zip(before, after, strict=True))
    return server, asking


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--per-second", type=float, default=10)
    parser.add_argument("--paths", nargs="+", default=PATHS, help="what is polled, of the server's own paths")
    options = parser.parse_args()
    rates: dict[bool, list[float]] = {False: [], True: []}
    with serving(options.model, options.threads) as port:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        rate(client, 16)
        poller = Poller(port, options.per_second, options.paths)
        try:
            server, asking = shares_of_a_core(client, poller)
            for number in range(options.rounds):
                for polled in (False, True) if number % 2 else (True, False):
                    poller.poll(polled)
                    rates[polled].append(rate(client, options.tokens))
        finally:
            poller.end()
    ratios = [under / alone for alone, under in zip(rates[False], rates[True], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{os.path.basename(options.model)}: alone {statistics.median(rates[False]):.1f} tokens/s,"
        f" polled {statistics.median(rates[True]):.1f}; ratio {middle:.3f} (quartiles {low:.3f} to {high:.3f});"
        f" polling takes {server:.2%} of a core in the server, {asking:.2%} in the poller"
    )


if __name__ == "__main__":
    main()
