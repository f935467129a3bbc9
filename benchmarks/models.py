"""Whole models through /v1: `bankml serve --native` beside llama-server, the same requests, alternating.

    python -m benchmarks.models MODEL.gguf [MODEL.gguf …] [--rounds 5] [--prompt 128] [--tokens 64] [--threads 2]
                                [--server LLAMA_SERVER [--other-bits]] [--write docs/performance.md]

Each MODEL.gguf has its record in MODEL.gguf.FORK.json. Prints prompt and decode tokens a second of both, and the ratio
as min / median / max over the rounds. Every round compares the two texts first: a speed without the bits is none.
`--write` makes the results page, kernels included. Needs `make oracle`.
"""

import argparse
import contextlib
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kernels
from tests import oracle

WORDS = ("river", "stone", "lantern", "orchard", "signal", "copper", "harbour", "winter", "saffron", "meadow")


@dataclass(frozen=True)
class Round:
    """Tokens a second of one round: (ours, theirs)."""

    prompt: tuple[float, float]
    decode: tuple[float, float]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], port: int, threads: int) -> Iterator[None]:
    environment = dict(os.environ, BANKML_LLAMA_THREADS=str(threads), BANKML_THREADS=str(threads))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise SystemExit(f"{command[0]} does not start")
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                break
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(20)


def ask(port: int, text: str, tokens: int) -> tuple[str, float, float]:
    """The answer's text, prompt tokens a second and decode tokens a second, as the server's own clock has them."""
    body = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "temperature": 0,
        "cache_prompt": False,
        "ignore_eos": True,  # a rate needs more tokens than one
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=1800) as response:
        answer = json.load(response)
    timings = answer["timings"]
    return answer["choices"][0]["message"]["content"], timings["prompt_per_second"], timings["predicted_per_second"]


def compare(model: Path, options: argparse.Namespace) -> list[Round]:
    ours, engine, theirs = free_port(), free_port(), free_port()
    serve = [
        sys.executable,
        "-m",
        "bankml",
        "serve",
        str(model),
        "--fork",
        f"{model}.FORK.json",
        "--native",
        "--ctx",
        "2048",
    ]
    serve += ["--listen", f"127.0.0.1:{ours}", "--upstream", f"127.0.0.1:{engine}"]
    reference = [
        options.server,
        "-m",
        str(model),
        "--host",
        "127.0.0.1",
        "--port",
        str(theirs),
        "-t",
        str(options.threads),
    ]
    reference += ["-c", "2048", "-np", "1", "--jinja", "--reasoning", "off", "--no-webui"]
    rounds = []
    with running(serve, ours, options.threads), running(reference, theirs, options.threads):
        for i in range(options.rounds + 1):  # the first warms both
            words = random.Random(i).choices(WORDS, k=max(1, int(options.prompt * 0.8)))
            text = "Continue: " + " ".join(words)
            a, b = ask(ours, text, options.tokens), ask(theirs, text, options.tokens)
            if a[0] != b[0] and not options.other_bits:
                raise SystemExit(f"{model.name}: the texts differ; no figure is worth printing\n{a[0]!r}\n{b[0]!r}")
            if i:
                rounds.append(Round((a[1], b[1]), (a[2], b[2])))
    return rounds


def figure(pairs: list[tuple[float, float]]) -> str:
    ratios = [a / b for a, b in pairs]
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    return f"{ours:.1f} | {theirs:.1f} | {min(ratios):.2f} / **{statistics.median(ratios):.2f}** / {max(ratios):.2f}"


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def page(tables: list[str], kernel_table: list[str], options: argparse.Namespace) -> str:
    return f"""# Performance

Written by `python -m benchmarks.models --write docs/performance.md`. Both sides ran in the same run, alternating, after
their texts (kernels: bits) had been compared. The reference is llama-server b11192 as `make oracle` builds it.

{processor()}, {options.threads} threads, {options.rounds} rounds, {platform.system()}.

## Whole models through /v1

{chr(10).join(tables)}

## Kernels, one thread

{chr(10).join(kernel_table)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--server", default=str(oracle.BIN / "llama-server"))
    parser.add_argument("--write", type=Path)
    parser.add_argument(
        "--other-bits", action="store_true", help="LLAMA_SERVER is of a build with other bits: its texts differ"
    )
    options = parser.parse_args()
    tables = ["| model | | bankML, tokens/s | llama-server | ratio min / median / max |", "|---|---|---|---|---|"]
    print("\n".join(tables))
    for model in options.models:
        rounds = compare(model, options)
        rows = [
            f"| {model.stem} | prompt of {options.prompt} | {figure([r.prompt for r in rounds])} |",
            f"| {model.stem} | decode | {figure([r.decode for r in rounds])} |",
        ]
        print("\n".join(rows), flush=True)
        tables += rows
    if options.write:
        options.write.write_text(page(tables, kernels.table(options.rounds), options))


if __name__ == "__main__":
    main()
