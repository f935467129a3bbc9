"""One file of requests, answered in every way that there is: requests a second, and whether the bytes are the same.

    python -m benchmarks.batch MODEL.gguf [--requests 1000] [--server LLAMA_SERVER] [--only NAME …] [--folder DIR]

The ways: one process, one answer at a time (`one`) and eight at once (`parallel`); killed five times and continued
(`killed`); three servers (`servers`); a Ray cluster of one node (`ray-1`), and of three, one of which is killed
(`ray-3`), whose nodes are processes of this machine with one CPU each; and, to compare with, the `openai` client in a
loop against `llama-server -np 8`, one request after the other (`openai`) and eight at once (`openai-8`). Each output
and its digest are compared with those of `one`. All share this machine's cores: a cluster of machines is not measured.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bankml.batch.output import DIGEST
from benchmarks.models import free_port, running
from tests import oracle

TEXT = "the lantern river of stones and a quiet door under moon light while rain walks along paper streets"
WORDS = TEXT.split(" ")
SYSTEMS = (5, 120, 700)
"""Words of the three system prompts, one of which every request begins with."""

KILLS = 5
LLAMA_THREADS = 2
"""Of the llama-server whose bits are computed: bits depend on it, so it is the same for every way."""
BANKML = [sys.executable, "-m", "bankml"]


def input_lines(count: int, plain: bool) -> list[str]:
    """Chats and completions, greedy and sampled, some with probabilities, a schema or a tool; 1 in 100 is bad."""
    rng = random.Random(5)
    systems = [" ".join(rng.choice(WORDS) for _ in range(words)) for words in SYSTEMS]
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    fields: list[dict[str, object]] = [
        {},
        {"temperature": 0},
        {"seed": 7},
        {"logprobs": True, "top_logprobs": 2},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}},
        {"tools": [tool], "tool_choice": "required"},
    ]
    lines = []
    for i in range(count):
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 30)))
        tokens = rng.randint(4, 24)
        messages = [{"role": "system", "content": systems[i % 3]}, {"role": "user", "content": text}]
        more = fields[i % 7 % 6] if not plain or i % 7 < 4 else {}
        url, body = "/v1/chat/completions", {"messages": messages, "max_tokens": tokens, **more}
        if i % 7 == 6:
            url, body = "/v1/completions", {"prompt": f"{systems[2]} {text}", "max_tokens": tokens}
        line = {"custom_id": f"request-{i}", "method": "GET" if i % 100 == 99 else "POST", "url": url, "body": body}
        lines.append(json.dumps(line))
    return lines


@dataclass(frozen=True)
class Way:
    """How the file was answered: seconds, and the sha256 of the output and of its digest (None: there is none)."""

    name: str
    seconds: float
    hashes: tuple[str, str] | None


class Ways:
    """Runs of one file; `folder` has the outputs."""

    def __init__(self, model: Path, source: Path, folder: Path) -> None:
        self.model = model
        self.source = source
        self.folder = folder

    def run(self, name: str, *options: str) -> Way:
        output = self._output(name)
        began = time.monotonic()
        done = subprocess.run(self._command(output, *options), capture_output=True, text=True, check=False)
        if done.returncode not in (0, 2) or "digest:" not in done.stdout:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        for line in done.stderr.splitlines():
            print(f"    {line}", file=sys.stderr)
        return Way(name, time.monotonic() - began, self._hashes(output))

    def killed(self, name: str, size: int) -> Way:
        """Kills at five sizes of the output, spread over its `size` bytes, then lets it end."""
        output, began = self._output(name), time.monotonic()
        for kill in range(1, KILLS + 1):
            process = subprocess.Popen(self._command(output, "--parallel", "8"), stderr=subprocess.DEVNULL)
            until = size * kill // (KILLS + 1)
            while process.poll() is None and (not output.exists() or output.stat().st_size < until):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
        ended = self.run_again(output)
        return Way(name, time.monotonic() - began, ended)

    def run_again(self, output: Path) -> tuple[str, str]:
        subprocess.run(self._command(output, "--parallel", "8"), capture_output=True, check=False)
        return self._hashes(output)

    def servers(self, name: str, count: int) -> Way:
        with contextlib.ExitStack() as stack:
            urls = [stack.enter_context(self._server()) for _ in range(count)]
            return self.run(name, "--parallel", "4", "--server", *urls)

    @contextlib.contextmanager
    def _server(self) -> Iterator[str]:
        port, engine = free_port(), free_port()
        where = ["--listen", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{engine}"]
        command = [*BANKML, "serve", str(self.model), "--native", "--parallel", "4", "--threads", "1", *where]
        with running(command, port, LLAMA_THREADS):
            yield f"http://127.0.0.1:{port}"

    def ray(self, name: str, nodes: int, kill: bool, size: int) -> Way:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster

        memory = {"object_store_memory": 80 << 20}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **memory})
        try:
            found = [cluster.add_node(num_cpus=1, **memory) for _ in range(nodes)]
            output, ended = self._output(name), threading.Event()

            def kill_one() -> None:
                while not ended.is_set() and (not output.exists() or output.stat().st_size < size // 3):
                    time.sleep(0.01)
                cluster.remove_node(found[-1], allow_graceful=False)

            killer = threading.Thread(target=kill_one)
            if kill:
                killer.start()
            way = self.run(name, "--ray", cluster.address, "--parallel", "4")
            ended.set()
            if kill:
                killer.join()
            return way
        finally:
            cluster.shutdown()

    def openai(self, name: str, server: Path, together: int) -> Way:
        """The client in a loop against llama-server, `together` requests at once."""
        from openai import APIError, OpenAI

        port = free_port()
        command = [str(server), "-m", str(self.model), "-np", "8", "-c", str(8 * 4096), "-t", "2", "--port", str(port)]
        with running([*command, "--host", "127.0.0.1", "--jinja"], port, 2):
            client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)

            def ask(line: str) -> None:
                found = json.loads(line)
                body = {"model": "m", **found["body"]}
                send = client.chat.completions if "messages" in body else client.completions
                with contextlib.suppress(APIError):
                    send.create(**body)

            lines = [line for line in self.source.read_text().splitlines() if '"POST"' in line]
            ask(lines[0])
            began = time.monotonic()
            with ThreadPoolExecutor(together) as pool:
                list(pool.map(ask, lines))
            return Way(name, time.monotonic() - began, None)

    def _output(self, name: str) -> Path:
        output = self.folder / f"{name}.jsonl"
        for path in self.folder.glob(f"{output.name}*"):
            path.unlink()
        return output

    def _command(self, output: Path, *options: str) -> list[str]:
        return [*BANKML, "batch", str(self.source), "-o", str(output), "--model", str(self.model), "--quiet", *options]

    def _hashes(self, output: Path) -> tuple[str, str]:
        digest = json.loads(output.with_name(output.name + DIGEST).read_text())["root"]
        return hashlib.sha256(output.read_bytes()).hexdigest(), str(digest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--plain", action="store_true", help="no request has a schema or a tool")
    parser.add_argument("--server", type=Path, help="llama-server of the reference build")
    parser.add_argument("--only", nargs="+", help="these ways, and `one`")
    parser.add_argument("--folder", type=Path, help="keep the outputs here")
    options = parser.parse_args()
    os.environ["BANKML_LLAMA_THREADS"] = str(LLAMA_THREADS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "requests.jsonl"
        source.write_text("\n".join(input_lines(options.requests, options.plain)) + "\n")
        ways = Ways(options.model, source, folder)
        before = cpu_seconds()
        first = ways.run("one", "--parallel", "1")
        size = (folder / "one.jsonl").stat().st_size
        report(first, first, options.requests, cpu_seconds() - before)
        others: dict[str, Callable[[], Way]] = {
            "parallel": lambda: ways.run("parallel", "--parallel", "8"),
            "killed": lambda: ways.killed("killed", size),
            "servers": lambda: ways.servers("servers", 3),
            "ray-1": lambda: ways.ray("ray-1", 1, False, size),
            "ray-3": lambda: ways.ray("ray-3", 3, True, size),
            "openai": lambda: ways.openai("openai", options.server or oracle.find("llama-server"), 1),
            "openai-8": lambda: ways.openai("openai-8", options.server or oracle.find("llama-server"), 8),
        }
        for name, way in others.items():
            if options.only is None or name in options.only:
                before = cpu_seconds()
                found = way()
                report(found, first, options.requests, None if name.startswith("ray") else cpu_seconds() - before)


def cpu_seconds() -> float:
    """Of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(way: Way, first: Way, requests: int, cpu: float | None) -> None:
    """Prints one line; `cpu` are the seconds of all processes but this one, None where they are not known."""
    same = "" if way.hashes is None else "the same bytes and digest" if way.hashes == first.hashes else "OTHER BYTES"
    ratio = first.seconds / way.seconds
    used = "" if cpu is None else f"{1000 * cpu / requests:6.1f} ms of CPU each"
    print(f"{way.name:10} {requests / way.seconds:7.2f} requests/s  {ratio:5.2f} x one  {used:22}  {same}", flush=True)


if __name__ == "__main__":
    main()
