"""Another process stores into the model's file without any time changing: what was hashed is what is computed with."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from bankml.errors import ModelChanged
from bankml.gate.contents import memory_for
from bankml.gate.identity import FileIdentity
from bankml.gate.verify import verify
from bankml.model.model import Model
from bankml.model.weights import Weights
from tests.tiny_model import tiny_model

# Maps the file shared and dirties the page, which changes the times now; a later store to a dirty page does not.
STORING = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
at = int(sys.argv[2])
mapped[at] = mapped[at]
print("dirtied", flush=True)
for line in sys.stdin:
    mapped[at] ^= 0x40
    print("stored", flush=True)
"""


@contextmanager
def storing(path, at):
    """A function that makes another process change the byte at `at` of the file, and returns once it is changed."""
    command = [sys.executable, "-c", STORING, str(path), str(at)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def expect(word):
            assert process.stdout.readline() == word + "\n"

        def store():
            process.stdin.write("now\n")
            process.stdin.flush()
            expect("stored")

        expect("dirtied")
        yield store
        process.stdin.close()


@pytest.fixture
def model(tmp_path):
    """(path, FORK.json, the byte of a weight)"""
    verified = tiny_model(tmp_path)
    embedding = next(tensor for tensor in verified.header.tensors if tensor.name == "token_embd.weight")
    return verified.path, verified.fork_path, verified.header.data_offset + embedding.offset + 101


def test_a_store_after_the_hash_does_not_reach_the_weights(model):
    path, fork, at = model
    with open(path, "rb") as file:
        pinned = file.read()
    with storing(path, at) as store:
        verified = verify(path, fork, into=memory_for)
        store()
        assert FileIdentity.of(path) == verified.identity, "the store was to be one that no time shows"
        weights = Weights(verified)
    with open(path, "rb") as file:
        assert file.read() != pinned
    for tensor in verified.header.tensors:
        start = verified.header.data_offset + tensor.offset
        assert weights.blocks(tensor.name).tobytes() == pinned[start : start + tensor.nbytes]


def test_a_file_that_is_read_again_is_hashed_again(model):
    path, fork, at = model
    with storing(path, at) as store:
        verified = verify(path, fork)
        store()
        assert FileIdentity.of(path) == verified.identity
        with pytest.raises(ModelChanged, match="changed since it was verified"):
            Model.open(verified, 256, 1)


def test_the_header_is_parsed_from_the_bytes_that_are_hashed(model):
    """A store into the header after it was parsed: the hash is that of the bytes that were parsed."""
    path, fork, _ = model
    with open(path, "rb") as file:
        at = file.read().index(b"general.architecture") + 5

    with storing(path, at) as store:
        verified = verify(path, fork, require=lambda header: store(), into=memory_for)
    assert verified.header.metadata["general.architecture"] == "llama"
    assert bytes(verified.contents.take()[at : at + 1]) == b"a"


def test_the_bytes_are_handed_over_once(model):
    path, fork, _ = model
    verified = verify(path, fork, into=memory_for)
    first, again = Weights(verified), Weights(verified)
    assert np.array_equal(first.blocks("token_embd.weight"), again.blocks("token_embd.weight"))
    assert verified.contents.take() is None
    with pytest.raises(ValueError, match="read-only"):
        first.blocks("token_embd.weight")[0] = 1


def test_a_fifo_at_the_models_path_blocks_nobody(model):
    path, fork, _ = model
    verified = verify(path, fork)
    os.unlink(path)
    os.mkfifo(path)
    raised = []

    def opened():
        for attempt in (lambda: Model.open(verified, 256, 1), verified.rehash, verified.check_unchanged):
            with pytest.raises(ModelChanged) as caught:
                attempt()
            raised.append(caught.value.message)

    thread = threading.Thread(target=opened, daemon=True)
    thread.start()
    thread.join(20)
    assert len(raised) == 3, "an open waits for the FIFO's writer"
    assert sum("not a regular file" in message for message in raised) == 2
