"""Many requests at once: the tokens a second of 1, 2, 4 and 8 together, beside llama-server with as many slots.

    python -m benchmarks.batching MODEL.gguf [--rounds 5] [--tokens 64] [--threads 2] [--server LLAMA_SERVER]

Rounds alternate between the two servers and the numbers of requests. Every answer of a crowd is compared with the one
that its request got alone before a figure counts. Then a prompt of 2,000 tokens comes while another answer is streamed:
the largest gap between two of its tokens, as a multiple of the median. Prints medians and ratios.
"""

import argparse
import json
import statistics
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.models import free_port, running
from tests import oracle

TOGETHER = (1, 2, 4, 8)


@dataclass(frozen=True)
class Timed:
    """An answer, and when its first and last token came (time.monotonic of this process)."""

    text: str
    first: float
    last: float
    gaps: list[float]


def body(number: int, words: int, tokens: int) -> bytes:
    message = {"role": "user", "content": f"Story {number}: " + "river stone lantern " * words}
    return json.dumps(
        {
            "messages": [message],
            "max_tokens": tokens,
            "temperature": 0,
            "cache_prompt": False,
            "ignore_eos": True,
            "stream": True,
        }
    ).encode()


def stream(port: int, data: bytes) -> Timed:
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    text, times = "", []
    with urllib.request.urlopen(request, timeout=1800) as response:
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            choices = json.loads(line[6:]).get("choices") or []
            for choice in choices:
                if piece := choice["delta"].get("content"):
                    text += piece
                    times.append(time.monotonic())
    gaps = [after - before for before, after in pairwise(times)]
    return Timed(text, times[0], times[-1], gaps)


def crowd(port: int, together: int, tokens: int) -> tuple[float, list[str]]:
    """Tokens a second of all together, from the first token of any to the last of any; and their texts."""
    with ThreadPoolExecutor(together) as pool:
        answers = list(pool.map(lambda i: stream(port, body(i, 4, tokens)), range(together)))
    begin = min(answer.first for answer in answers)
    end = max(answer.last for answer in answers)
    return together * (tokens - 1) / (end - begin), [answer.text for answer in answers]


def longest_gap(port: int, tokens: int) -> tuple[float, float]:
    """The largest and the median gap of a stream into which a prompt of 2,000 tokens comes."""
    found: list[Timed] = []
    thread = threading.Thread(target=lambda: found.append(stream(port, body(0, 4, tokens))))
    thread.start()
    time.sleep(1)
    stream(port, body(1, 500, 1) if tokens else b"")
    thread.join()
    return max(found[0].gaps[1:]), statistics.median(found[0].gaps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--server", default=str(oracle.BIN / "llama-server"))
    options = parser.parse_args()
    ours, engine, theirs = free_port(), free_port(), free_port()
    serve = [sys.executable, "-m", "bankml", "serve", str(options.model), "--fork", f"{options.model}.FORK.json"]
    serve += ["--native", "--ctx", "4096", "--parallel", "8", "--listen", f"127.0.0.1:{ours}"]
    serve += ["--upstream", f"127.0.0.1:{engine}"]
    reference = [options.server, "-m", str(options.model), "--host", "127.0.0.1", "--port", str(theirs)]
    reference += ["-t", str(options.threads), "-c", "32768", "-np", "8", "--jinja", "--reasoning", "off", "--no-webui"]
    rates: dict[tuple[str, int], list[float]] = {}
    with running(serve, ours, options.threads), running(reference, theirs, options.threads):
        alone = [stream(ours, body(i, 4, options.tokens)).text for i in range(max(TOGETHER))]
        for i in range(options.rounds + 1):
            for together in TOGETHER:
                for name, port in (("bankML", ours), ("llama-server", theirs)):
                    rate, texts = crowd(port, together, options.tokens)
                    if name == "bankML" and texts != alone[:together]:
                        raise SystemExit(f"{together} together: an answer differs from the one it is alone")
                    if i:
                        rates.setdefault((name, together), []).append(rate)
        gap, median = longest_gap(ours, 400)
    print("| together | bankML, tokens/s | over 1 | llama-server -np 8 | ratio min / median / max |")
    print("|---|---|---|---|---|")
    for together in TOGETHER:
        mine, other = rates["bankML", together], rates["llama-server", together]
        ratios = [a / b for a, b in zip(mine, other, strict=True)]
        over = [a / b for a, b in zip(mine, rates["bankML", 1], strict=True)]
        beside = f"{min(ratios):.2f} / **{statistics.median(ratios):.2f}** / {max(ratios):.2f}"
        mine_text = f"{statistics.median(mine):.1f} | {statistics.median(over):.2f}"
        print(f"| {together} | {mine_text} | {statistics.median(other):.1f} | {beside} |")
    print(f"a prompt of 2,000 tokens comes: largest gap {gap / median:.1f} x the median of {median * 1000:.1f} ms")


if __name__ == "__main__":
    main()
