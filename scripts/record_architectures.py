"""Records what the reference's llama-server answers for a tiny model of every architecture, and in a session with one
that has a sliding window.

    python -m scripts.record_architectures [NAME …]

Needs `make oracle`. Writes tests/recordings/model/architectures.json, of which other names keep their recordings, and
tests/recordings/engine/window_sessions.json.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.test_window_sessions import ANSWER, session_prompts
from tests.model.test_architectures import CONTEXT, LENGTHS, STEPS, TOP, prompt
from tests.oracle import BIN, ROOT
from tests.tiny_architectures import TINY, tiny_architecture

PORT = 18199
RECORDING = ROOT / "tests" / "recordings" / "model" / "architectures.json"
SESSIONS = ROOT / "tests" / "recordings" / "engine" / "window_sessions.json"
WHOLE = [[token, False] for token in range(128, 256)]  # only tokens whose text is a character


@contextmanager
def reference(model: Path, cache: str) -> Iterator[None]:
    """A llama-server of the reference build on `model`."""
    command = [BIN / "llama-server", "-m", model, "-c", CONTEXT, "-t", 2, "-np", 1, "--port", PORT, "--no-webui",
               "-ctk", cache, "-ctv", cache]  # fmt: skip
    quiet = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "LD_LIBRARY_PATH": str(BIN)}
    server = subprocess.Popen(
        [str(one) for one in command],
        env=os.environ | quiet,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=2).close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def asked(body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        found: dict[str, Any] = json.load(response)
    return found


def session(name: str) -> list[list[Any]]:
    """For each prompt how many of its tokens were found again, and the tokens of the answer."""
    with tempfile.TemporaryDirectory() as folder, reference(tiny_architecture(Path(folder), name).path, "f16"):
        found = []
        for one in session_prompts():
            body = {"prompt": one, "n_predict": ANSWER, "temperature": 0, "return_tokens": True, "ignore_eos": True,
                    "logit_bias": WHOLE}  # fmt: skip
            got = asked(body)
            found.append([got["timings"]["cache_n"], got["tokens"]])
        return found


def answer(n: int) -> dict[str, Any]:
    """The tokens after a prompt of n, and the likeliest at each with their logarithms' bits."""
    body = {"prompt": prompt(n), "n_predict": STEPS, "temperature": 0, "n_probs": TOP, "return_tokens": True,
            "cache_prompt": False, "ignore_eos": True, "logit_bias": WHOLE}  # fmt: skip
    got = asked(body)
    entries = got["completion_probabilities"]
    if [entry["id"] for entry in entries] != got["tokens"]:
        raise SystemExit("a token without probabilities: its text is not whole characters")
    top = [
        [[one["id"], int(np.float32(one["logprob"]).view(np.uint32))] for one in entry["top_logprobs"]]
        for entry in entries
    ]
    return {"n": n, "tokens": got["tokens"], "top": top}


def record(name: str) -> dict[str, list[dict[str, Any]]]:
    recorded = {}
    with tempfile.TemporaryDirectory() as folder:
        path = tiny_architecture(Path(folder), name).path
        for cache in ("f16", "q8_0"):
            with reference(path, cache):
                recorded[cache] = [answer(n) for n in LENGTHS]
    return recorded


def main() -> None:
    known = json.loads(RECORDING.read_text()) if RECORDING.exists() else {}
    for name in sys.argv[1:] or TINY:
        known[name] = record(name)
    sessions = {name: session(name) for name in ("gemma2", "gemma3", "olmo3")}
    SESSIONS.write_text(json.dumps(sessions, separators=(",", ":")).replace("]],", "]],\n") + "\n")
    lines = [f"{json.dumps(name)}: {json.dumps(known[name], separators=(',', ':'))}" for name in TINY if name in known]
    RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
