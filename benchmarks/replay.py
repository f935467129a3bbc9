"""How much faster an answer is verified than generated: replay beside serve, the same answers.

    python -m benchmarks.replay MODEL.gguf [MODEL.gguf …] [--rounds 5] [--tokens 128] [--threads 2]

Each MODEL.gguf has its record in MODEL.gguf.FORK.json. A round generates an answer and replays it; the model is loaded
once for each. Prints tokens a second of both and the ratio as min / median / max. An answer that is not equal ends it.
"""

import argparse
import json
import os
import random
import time
from pathlib import Path

from bankml.api.routes import Serving, build_application
from bankml.gate.contents import memory_for
from bankml.gate.verify import Verified, verify
from bankml.http.collected_reply import CollectedReply
from bankml.http.exchange import Request
from bankml.library.load import LoadOptions
from bankml.replay.opening import open_for
from bankml.replay.replay import read_evidence, replay
from benchmarks.models import WORDS, figure


def opened(path: Path) -> Verified:
    return verify(str(path), f"{path}.FORK.json", into=memory_for)


def compare(path: Path, rounds: int, tokens: int, threads: int) -> list[tuple[float, float]]:
    """Tokens a second of each round: replayed, generated."""
    application = build_application(opened(path), LoadOptions(2048, threads, os.environ), Serving())
    pairs = []
    for i in range(rounds + 1):  # the first warms both
        words = " ".join(random.Random(i).choices(WORDS, k=20))
        body = {"messages": [{"role": "user", "content": words}], "max_tokens": tokens, "cache_prompt": False}
        sent = json.dumps({**body, "seed": i, "ignore_eos": True}).encode()
        reply = CollectedReply(lambda: False)
        http = Request("POST", "/v1/chat/completions", "", {}, sent, "gateway", time.monotonic())
        application.answer(http, reply)
        generated = json.loads(reply.body)["timings"]["predicted_per_second"]
        evidence = read_evidence(sent, reply.body)
        verdict = replay(evidence, open_for(evidence.record, opened(path), threads=threads))
        if not verdict.ok:
            raise SystemExit(f"{path.name}: {'; '.join(verdict.problems)}")
        if i:
            pairs.append((verdict.tokens / verdict.seconds, generated))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print("| model | replayed, tokens/s (prompt included) | generated | ratio min / median / max |\n|---|---|---|---|")
    for path in options.models:
        pairs = compare(path, options.rounds, options.tokens, options.threads)
        print(f"| {path.stem} | {figure(pairs)} |", flush=True)


if __name__ == "__main__":
    main()
