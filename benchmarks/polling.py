"""What polling costs the decode rate: /bankml/usage and /bankml/metrics, each asked for ten times a second.

    python -m benchmarks.polling MODEL.gguf [--rounds 20] [--tokens 64] [--threads N] [--per-second 10]

Server, poller and this client are three processes; the poller is stopped and continued by signals, so that rounds
differ in nothing else. A round is one answer of so many tokens left alone and one while polled, in turning order, so
that a busy machine disturbs both alike; a rate is the server's own (`timings.predicted_per_second`). Printed are the
medians, the median of the rounds' ratios with its quartiles, and, because other programs move rates by more than the
1 % that is the target, what the polling takes of one core: the server's processor time while it is polled and asked
nothing else. MODEL.gguf.FORK.json must be beside it.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATHS = ("/bankml/usage", "/bankml/metrics")
POLLER = """
import http.client, sys, threading, time
port, pause = int(sys.argv[1]), 1 / float(sys.argv[2])
def poll(path):
    client = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        began = time.monotonic()
        client.request("GET", path)
        client.getresponse().read()
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


@contextmanager
def poller(port: int, per_second: float) -> Iterator[Callable[[bool], None]]:
    """A process that asks for each of PATHS so often, each over a connection of its own; whether it does can be set."""
    words = [sys.executable, "-c", POLLER, str(port), str(per_second), *PATHS]
    process = subprocess.Popen(words, stdin=subprocess.PIPE)

    def poll(on: bool) -> None:
        process.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
        time.sleep(0.3)  # what is under way is over, or the first is

    try:
        time.sleep(2.0)  # it is up, and the first look has loaded what looking needs
        yield poll
    finally:
        process.kill()
        process.communicate()


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


def share_of_a_core(client: http.client.HTTPConnection, seconds: float = 5.0) -> float:
    """What the server uses of one core now."""
    began, before = time.monotonic(), spent(client)
    time.sleep(seconds)
    return (spent(client) - before) / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--per-second", type=float, default=10)
    options = parser.parse_args()
    rates: dict[bool, list[float]] = {False: [], True: []}
    with serving(options.model, options.threads) as port, poller(port, options.per_second) as poll:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        rate(client, 16)
        taken = share_of_a_core(client)
        for number in range(options.rounds):
            for polled in (False, True) if number % 2 else (True, False):
                poll(polled)
                rates[polled].append(rate(client, options.tokens))
    ratios = [under / alone for alone, under in zip(rates[False], rates[True], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{os.path.basename(options.model)}: alone {statistics.median(rates[False]):.1f} tokens/s,"
        f" polled {statistics.median(rates[True]):.1f}; ratio {middle:.3f} (quartiles {low:.3f} to {high:.3f});"
        f" polling takes {taken:.1%} of a core"
    )


if __name__ == "__main__":
    main()
