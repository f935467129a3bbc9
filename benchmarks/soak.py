"""Mixed clients for minutes: no request is lost or stuck, and memory, descriptors and threads do not grow.

    python -m benchmarks.soak [MODEL.gguf] [--minutes 10] [--clients 32] [--parallel 8]

Each client sends one request after the other: chats and completions, streamed and whole, with conversations that go on,
several answers, a grammar, a prompt of some thousand characters; it leaves in the middle of some streams, and reads
some slowly. Prints the times to the first token (median, p99), and memory, descriptors and threads after a third of the
time and at the end; the prompt cache has 64 MiB, so that it is full by then. The exit code is 1 where a request failed,
or one of them grew by more than a tenth. Without a model a tiny one is made.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.models import free_port, running
from tests.tiny_model import tiny_model

WORDS = ("river", "stone", "lantern", "harbour", "window", "morning", "quiet", "letter", "orchard", "winter")
MIB = 1 << 20
ALLOWED_GROWTH = 1.1
SLACK = {"MiB": 24, "descriptors": 40, "threads": 8}
"""What may come and go at any moment, besides the tenth."""


@dataclass
class Counts:
    """What all clients have seen."""

    first_tokens: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Client(threading.Thread):
    """Sends requests until `until` (time.monotonic)."""

    def __init__(self, port: int, seed: int, until: float, counts: Counts) -> None:
        super().__init__(daemon=True)
        self._port, self._until, self._counts = port, until, counts
        self._random = random.Random(seed)
        self._messages: list[dict[str, str]] = []

    def run(self) -> None:
        while time.monotonic() < self._until:
            kind = self._random.choice(
                ("stream", "stream", "whole", "leave", "slow", "several", "grammar", "long", "text")
            )
            try:
                self._send(kind)
            except urllib.error.HTTPError as error:
                busy = error.code == 503
                self._counts.outcomes["busy" if busy else "failed"] += 1
                if not busy:
                    self._counts.failures.append(f"{kind}: {error.code} {error.read()[:200]!r}")
            except Exception as error:
                self._counts.outcomes["failed"] += 1
                self._counts.failures.append(f"{kind}: {error!r}")

    def _send(self, kind: str) -> None:
        path, body = self._request(kind)
        url = f"http://127.0.0.1:{self._port}{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        began, pieces, first = time.monotonic(), [], None
        with urllib.request.urlopen(request, timeout=600) as response:
            if not body.get("stream"):
                text = json.load(response)["choices"][0]
                self._counts.outcomes[kind] += 1
                if kind == "whole":
                    self._say("assistant", text["message"]["content"] or "")
                return
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                piece = json.loads(line[6:])["choices"][0]["delta"].get("content")
                if piece:
                    first = first or time.monotonic() - began
                    pieces.append(piece)
                if kind == "leave" and len(pieces) >= 5:
                    break
                if kind == "slow":
                    time.sleep(0.02)
        if first is not None:
            self._counts.first_tokens.append(first)
        self._counts.outcomes[kind] += 1
        self._say("assistant", "".join(pieces))

    def _say(self, role: str, content: str) -> None:
        self._messages.append({"role": role, "content": content})

    def _words(self, n: int) -> str:
        return " ".join(self._random.choices(WORDS, k=n))

    def _request(self, kind: str) -> tuple[str, dict[str, object]]:
        tokens = self._random.randint(4, 48)
        if kind == "text":
            return "/v1/completions", {"prompt": self._words(12), "max_tokens": tokens}
        unanswered = bool(self._messages) and self._messages[-1]["role"] == "user"
        if kind == "long" or unanswered or len(self._messages) > 8:
            self._messages = []
        self._say("user", self._words(400 if kind == "long" else 8))
        body: dict[str, object] = {"messages": list(self._messages), "max_tokens": tokens}
        if kind in ("stream", "leave", "slow"):
            body["stream"] = True
        if kind == "several":
            body["n"] = 2
        if kind == "grammar":
            body["response_format"] = {"type": "json_object"}
        return "/v1/chat/completions", body


def sizes(process: psutil.Process) -> dict[str, float]:
    return {
        "MiB": process.memory_info().rss / MIB,
        "descriptors": process.num_fds(),
        "threads": process.num_threads(),
    }


def server_of(port: int) -> psutil.Process:
    """The process that listens at `port`."""
    for process in psutil.process_iter():
        try:
            if any(
                one.laddr.port == port and one.status == psutil.CONN_LISTEN for one in process.net_connections("tcp")
            ):
                return process
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    raise SystemExit(f"no process listens at port {port}")


def settled(process: psutil.Process) -> dict[str, float]:
    """The smallest of a few looks: answers that run at one moment do not count."""
    looks = []
    for _ in range(20):
        looks.append(sizes(process))
        time.sleep(0.1)
    return {name: min(look[name] for look in looks) for name in looks[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak(options, options.model or Path(tiny_model(Path(folder)).path))


def soak(options: argparse.Namespace, model: Path) -> None:
    os.environ["BANKML_CACHE_RAM"] = "64"
    port, engine = free_port(), free_port()
    serve = [sys.executable, "-m", "bankml", "serve", str(model), "--fork", f"{model}.FORK.json"]
    serve += ["--native", "--ctx", "4096", "--parallel", str(options.parallel), "--listen", f"127.0.0.1:{port}"]
    serve += ["--upstream", f"127.0.0.1:{engine}"]
    counts = Counts()
    with running(serve, port, options.threads):
        process = server_of(port)
        until = time.monotonic() + options.minutes * 60
        clients = [Client(port, seed, until, counts) for seed in range(options.clients)]
        for client in clients:
            client.start()
        time.sleep(options.minutes * 20)
        before = settled(process)
        for client in clients:
            client.join(options.minutes * 60 + 600)
        stuck = sum(client.is_alive() for client in clients)
        time.sleep(2)
        after = settled(process)
    report(counts, before, after, stuck)


def report(counts: Counts, before: dict[str, float], after: dict[str, float], stuck: int) -> None:
    times = sorted(counts.first_tokens) or [0.0]
    p99 = times[min(len(times) - 1, len(times) * 99 // 100)]
    print(f"requests: {sum(counts.outcomes.values())} {dict(counts.outcomes)}")
    print(f"time to first token: median {statistics.median(times) * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms")
    grown = []
    for name, value in before.items():
        print(f"{name}: {value:.0f} after a third of the time, {after[name]:.0f} at the end")
        if after[name] > value * ALLOWED_GROWTH + SLACK[name]:
            grown.append(name)
    for failure in counts.failures[:10]:
        print(failure)
    if stuck or counts.failures or grown:
        raise SystemExit(
            f"{stuck} clients are stuck, {len(counts.failures)} requests failed, grown: {grown or 'nothing'}"
        )


if __name__ == "__main__":
    main()
