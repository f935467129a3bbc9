"""Embeddings and scores beside the reference's llama-server, live: the same bodies to both."""

import json
import os
import struct
import subprocess
from contextlib import contextmanager

import pytest

from tests import oracle
from tests.api.embedding_houses import CONTEXT, house
from tests.end_to_end.servers import exchange, free_port, waiting
from tests.tiny_embedders import EMBEDDERS, sentence, tiny_embedder

pytestmark = pytest.mark.oracle

POOLINGS = ("none", "mean", "cls", "last")
EMBEDDED = [
    *(("/v1/embeddings", {"input": sentence(n)}) for n in (1, 4, 40, 100, 290)),
    ("/v1/embeddings", {"input": ["a b c", "a b c d", "", "a b c d e"], "encoding_format": "base64"}),
    ("/v1/embeddings", {"input": [{"prompt_string": "a b"}, ["a", 7, "b"], [9, 8, 7]]}),
    ("/v1/embeddings", {"content": "a b"}),
    ("/embedding", {"content": [sentence(3), [5, 6, 7], "a b"]}),
    ("/embedding", {"input": "x y", "encoding_format": "base64"}),
    *(("/embeddings", {"input": "hello there", "embd_normalize": norm}) for norm in (-1, 0, 1, 2, 3, 100)),
    *(("/v1/embeddings", body) for body in ({}, {"input": []}, {"input": [[]]}, {"input": [99999]}, {"input": 5})),
    ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}),
    ("/v1/embeddings", {"input": ["a", sentence(1400)]}),
]
RANKED = [
    ("/v1/rerank", {"query": "what is a", "documents": [sentence(5), sentence(9), "", "b c"]}),
    ("/reranking", {"query": "q", "texts": ["a b", "c d e"], "return_text": True}),
    ("/rerank", {"query": "q", "documents": ["a b", "c d e", "f"], "top_n": 2}),
    ("/v1/rerank", {"query": "[SEP] {document}", "documents": ["<end>[CLS]"]}),
    *(("/v1/rerank", body) for body in ({}, {"query": 5}, {"query": "a", "documents": []})),
    ("/v1/rerank", {"query": "q", "documents": [sentence(1400)]}),
]


@contextmanager
def llama_server(path, *flags):
    port = free_port()
    command = [str(oracle.find("llama-server")), "-m", str(path), "-c", str(CONTEXT), "-t", "2", "-np", "1",
               "-b", str(CONTEXT), "-ub", str(CONTEXT), "--port", str(port), "--no-webui", *flags]  # fmt: skip
    quiet = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "LD_LIBRARY_PATH": str(oracle.BIN)}
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, env=os.environ | quiet, stdout=silent, stderr=silent) as process:
        try:
            waiting(port, process)
            yield port
        finally:
            process.terminate()


def bits(value):
    """An answer with its numbers as float32, and without what only one of the two has."""
    if isinstance(value, dict):
        return {key: bits(one) for key, one in value.items() if key not in ("bankml_receipt", "model", "n_ctx")}
    if isinstance(value, list):
        return [bits(one) for one in value]
    return struct.pack("f", value) if isinstance(value, float) else value


def same(theirs, ours, bodies):
    """A client's mistake that is a 500 there is a 400 here, in the same words."""
    for path, body in bodies:
        sent = json.dumps(body).encode()
        wanted, _, there = exchange(theirs, "POST", path, sent)
        status, _, here = exchange(ours, "POST", path, sent)
        there, here = bits(json.loads(there)), bits(json.loads(here))
        if (wanted, status) == (500, 400):
            there, here = there["error"]["message"], here["error"]["message"]
        else:
            assert status == wanted, (path, body)
        assert here == there, (path, body)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", [name for name in EMBEDDERS if "reranker" not in name])
def test_embeddings(tmp_path, name, pooling):
    verified = tiny_embedder(tmp_path, name)
    options = ("--embeddings", "--pooling", pooling)
    with llama_server(verified.path, *options) as theirs, house(verified, embeddings=True, pooling=pooling) as ours:
        same(theirs, ours.listening.gateway[1], EMBEDDED)


@pytest.mark.parametrize("name", [name for name in EMBEDDERS if "reranker" in name])
def test_scores(tmp_path, name):
    verified = tiny_embedder(tmp_path, name)
    with llama_server(verified.path, "--reranking") as theirs, house(verified, embeddings=True) as ours:
        same(theirs, ours.listening.gateway[1], RANKED)
