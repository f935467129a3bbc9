"""Safetensors headers nobody vouches for, the `safetensors` package as second opinion on the good and the bad ones."""

import json
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from bankml.convert.hugging_face import safetensors
from bankml.convert.hugging_face.safetensors import SIZES, read_tensors
from bankml.errors import Refused
from bankml.gguf.header import open_regular


def encoded(header, data=b"", length=None):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(raw) if length is None else length).to_bytes(8, "little") + raw + data


def read(path, content):
    path.write_bytes(content)
    with open_regular(path) as file:
        return read_tensors(file, "x.safetensors")


def one(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def test_what_the_package_writes(tmp_path):
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.arange(5, dtype=np.float16),
        "empty": np.zeros((0, 4), np.float32),
        "scalar": np.array(3, np.float32),
        "bytes": np.arange(3, dtype=np.uint8),
    }
    content = save(arrays, metadata={"format": "pt"})
    found = read(tmp_path / "x", content)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        tensor = found[name]
        assert tensor.shape == array.shape and tensor.nbytes == array.nbytes
        assert content[tensor.start : tensor.start + tensor.nbytes] == array.tobytes()


def test_padding_after_the_header(tmp_path):
    header = json.dumps({"a": one()}).encode() + b"   "
    assert read(tmp_path / "x", encoded(header, bytes(8)))["a"].start == 8 + len(header)


HOSTILE = {
    "give a header": [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"\xff" * 8,
        b"\xff" * 100,
        encoded({}, length=3),
        encoded(b"{}" + b" " * 100, length=(1 << 63)),
        (5 << 20).to_bytes(8, "little") + b"{}" + b" " * ((5 << 20) - 2),
    ],
    "does not begin with {": [encoded(b"[]"), encoded(b" {}"), encoded(b"nul")],
    "is not JSON": [
        encoded(b"{x"),
        encoded(b"{\xff}"),
        encoded(b'{"a": NaN}'),
        encoded(b'{"a":' * 50_000),
        encoded(b'{"a": ' + b"9" * 5000 + b"}"),
    ],
    "twice": [
        encoded(b'{"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}, "a": 3}'),
        encoded(b'{"a": {"dtype": "F32", "dtype": "F16", "shape": [0], "data_offsets": [0, 0]}}'),
    ],
    "is not an object of dtype": [
        encoded({"a": 3}),
        encoded({"a": {"dtype": "F32"}}),
        encoded({"a": one(more=1)}, bytes(8)),
    ],
    "has dtype": [
        encoded({"a": one("F5")}, bytes(8)),
        encoded({"a": one(3)}, bytes(8)),
        encoded({"a": one([])}, bytes(8)),
    ],
    "has a shape": [
        encoded({"a": one(shape=[-2])}, bytes(8)),
        encoded({"a": one(shape=[2.0])}, bytes(8)),
        encoded({"a": one(shape=[True, 2])}, bytes(8)),
        encoded({"a": one(shape=[1 << 63])}, bytes(8)),
        encoded({"a": one(shape=[1] * 9)}, bytes(8)),
    ],
    "has data_offsets": [
        encoded({"a": one(offsets=[0])}, bytes(8)),
        encoded({"a": one(offsets=[0, 8.0])}, bytes(8)),
        encoded({"a": one(offsets=[-8, 0])}, bytes(8)),
    ],
    "bytes, but ": [
        encoded({"a": one(shape=[3])}, bytes(8)),
        encoded({"a": one(offsets=[8, 0])}, bytes(8)),
        encoded({"a": one(shape=[(1 << 63) - 1] * 8)}, bytes(8)),
    ],
    "begins at byte": [
        encoded({"a": one(offsets=[8, 16])}, bytes(16)),
        encoded({"a": one(), "b": one()}, bytes(8)),
        encoded({"a": one(), "b": one(offsets=[4, 12])}, bytes(12)),
        encoded({"a": one(), "b": one(offsets=[16, 24])}, bytes(24)),
    ],
    "its tensors end at byte": [
        encoded({"a": one()}, bytes(7)),
        encoded({"a": one()}, bytes(9)),
        encoded({}, bytes(1)),
        encoded({"a": one(shape=[1 << 60], offsets=[0, 1 << 62])}, bytes(8)),
    ],
}


@pytest.mark.parametrize(
    ("says", "content"), [(says, content) for says, contents in HOSTILE.items() for content in contents]
)
def test_hostile_headers(tmp_path, says, content):
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match=rf"^x\.safetensors is not a safetensors file: .*{says}") as refusal:
            read(tmp_path / "x", content)
        assert len(refusal.value.message) < 300
        assert tracemalloc.get_traced_memory()[1] < 4 * len(content) + (16 << 20)
    finally:
        tracemalloc.stop()


def test_too_many_tensors(tmp_path, monkeypatch):
    monkeypatch.setattr(safetensors, "MAX_TENSORS", 3)
    empty = {f"t{i}": one(shape=[0], offsets=[0, 0]) for i in range(4)}
    with pytest.raises(Refused, match="names 4 tensors, the limit is 3"):
        read(tmp_path / "x", encoded(empty))


offsets = st.integers(-2, 40) | st.sampled_from([1 << 31, (1 << 63) - 1, 1 << 63, 1.0, None, True])
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F16", "BF16", "U8", "I64", "X", "f32", 3]),
        "shape": st.lists(st.integers(-1, 4) | st.sampled_from([1 << 32, (1 << 63) - 1]), max_size=3),
        "data_offsets": st.lists(offsets, min_size=2, max_size=2),
    }
)


@st.composite
def honest(draw):
    """Tensors one after another, as a header should have them."""
    header, at = {}, 0
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True)):
        dtype = draw(st.sampled_from(["F32", "F16", "U8"]))
        shape = draw(st.lists(st.integers(0, 3), max_size=2))
        size = int(np.prod(shape)) * SIZES[dtype]
        header[name] = one(dtype, shape, (at, at + size))
        at += size
    return header, at


@given(honest(), st.dictionaries(st.sampled_from("abc"), entries, max_size=2), st.integers(-1, 1))
@example(({}, 0), {"a": one("F32", [1 << 32, 1 << 32, 0], (0, 0))}, 0)
def test_what_is_taken_here_is_taken_by_the_package_too(tmp_path_factory, honest, odd, longer):
    header, size = honest
    content = encoded({**header, **odd}, bytes(max(size + longer * len(odd), 0)))
    path = tmp_path_factory.getbasetemp() / f"fuzz-{os.getpid()}"
    try:
        mine = read(path, content)
    except Refused:
        if not odd:
            raise
        return
    theirs = {name: (one["dtype"], tuple(one["shape"])) for name, one in deserialize(content)}
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in mine.items()} == theirs


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / f"bytes-{os.getpid()}"
    try:
        read(path, content)
    except Refused:
        with pytest.raises(SafetensorError):
            deserialize(content)
