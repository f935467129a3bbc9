"""Records the vectors and scores that the reference's llama-server gives for tiny models that embed.

    python -m scripts.record_embeddings

Needs `make oracle`. Writes tests/recordings/model/embeddings.json: for each model and pooling the bytes of every
vector, in base64 of float32, and for rerankers the scores of documents.
"""

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.end_to_end.servers import ask, free_port, waiting
from tests.model.test_embedders import CONTEXT, DOCUMENTS, LENGTHS, NORMS, POOLINGS, QUERY, RERANKERS, inputs
from tests.oracle import BIN, ROOT
from tests.tiny_embedders import EMBEDDERS, tiny_embedder

RECORDING = ROOT / "tests" / "recordings" / "model" / "embeddings.json"


@contextmanager
def llama_server(model: Path, *flags: str) -> Iterator[int]:
    """A llama-server of the reference build on `model`; its port."""
    port = free_port()
    command = [BIN / "llama-server", "-m", model, "-c", CONTEXT, "-t", 2, "-np", 1, "--port", port, "--no-webui",
               "-b", CONTEXT, "-ub", CONTEXT, *flags]  # fmt: skip
    quiet = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "LD_LIBRARY_PATH": str(BIN)}
    silent = subprocess.DEVNULL
    with subprocess.Popen(
        [str(one) for one in command], env=os.environ | quiet, stdout=silent, stderr=silent
    ) as server:
        try:
            waiting(port, server)
            yield port
        finally:
            server.terminate()


def answer(port: int, path: str, body: object) -> Any:
    status, data, _ = ask(port, path, body)
    if status != 200:
        raise RuntimeError(f"{path}: {status} {data[:200]!r}")
    return json.loads(data)


def packed(vectors: Any) -> list[str]:
    return [base64.b64encode(np.asarray(one, "<f4").tobytes()).decode() for one in vectors]


def embeddings(path: Path, pooling: str) -> dict[str, Any]:
    """The vectors of inputs of several lengths, not normalized, and those of one input by each norm."""
    with llama_server(path, "--embeddings", "--pooling", pooling) as port:

        def vectors(tokens: list[int], norm: int) -> list[str]:
            body = {"content": tokens, "embd_normalize": norm}
            return packed(answer(port, "/embedding", body)[0]["embedding"])

        lengths = LENGTHS[:2] if pooling == "none" else LENGTHS
        found = {"lengths": [vectors(inputs(n), -1) for n in lengths]}
        return found if pooling == "none" else found | {"norms": [vectors(inputs(5, 2 + norm), norm) for norm in NORMS]}


def scores(path: Path) -> list[float]:
    """Of each document, in the order of the request."""
    with llama_server(path, "--reranking") as port:
        found = answer(port, "/v1/rerank", {"query": QUERY, "documents": DOCUMENTS})["results"]
        return [one["relevance_score"] for one in sorted(found, key=lambda one: one["index"])]


def main() -> None:
    recorded: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in EMBEDDERS:
            path = tiny_embedder(Path(folder), name).path
            if name in RERANKERS:
                recorded[name] = {"rank": scores(path)}
            else:
                recorded[name] = {pooling: embeddings(path, pooling) for pooling in POOLINGS}
    RECORDING.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
