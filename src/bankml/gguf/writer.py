"""Writes a GGUF v3 file tensor by tensor; it appears under its name when complete, or not at all."""

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

from bankml.files import atomic_write
from bankml.gguf.block_types import BlockType
from bankml.gguf.header import DEFAULT_ALIGNMENT, MAGIC, VERSION
from bankml.gguf.values import FORMATS, ValueType

Buffer = bytes | bytearray | memoryview

PAD_BYTES = 1 << 20


@dataclass(frozen=True)
class TensorSpec:
    """A tensor to be written: `shape` with the row length (ne0) first, whole blocks a row."""

    name: str
    shape: tuple[int, ...]
    type: BlockType

    @property
    def nbytes(self) -> int:
        return self.type.nbytes(prod(self.shape))


def encode_value(kind: ValueType, value: int | float | bool | str | bytes) -> bytes:
    """The encoding of one value in a header, with its type before it."""
    return struct.pack("<I", kind) + _bare(kind, value)


def encode_array(kind: ValueType, values: Sequence[int | float | bool | str | bytes]) -> bytes:
    """The encoding of an array of numbers, bools or strings, with its types and count before it."""
    head = struct.pack("<IIQ", ValueType.ARRAY, kind, len(values))
    return head + b"".join(_bare(kind, value) for value in values)


def _bare(kind: ValueType, value: int | float | bool | str | bytes) -> bytes:
    if kind is ValueType.STRING:
        return _string(value if isinstance(value, bytes) else str(value))
    return struct.pack("<" + FORMATS[kind], value)


def _string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def _pad(out: BinaryIO, count: int) -> None:
    """Writes zeros in pieces: an alignment may be two gigabytes."""
    for at in range(0, count, PAD_BYTES):
        out.write(bytes(min(PAD_BYTES, count - at)))


class TensorWriter:
    """Writes the tensors' bytes in the order of the header, in pieces of any size, and pads each to the alignment."""

    def __init__(self, out: BinaryIO, tensors: Sequence[TensorSpec], alignment: int) -> None:
        self._out = out
        self._alignment = alignment
        self._sizes = [(tensor.name, tensor.nbytes) for tensor in tensors]
        self._index = 0
        self._written = 0

    def write(self, data: Buffer) -> None:
        """Appends to the current tensor. Raises ValueError beyond its size."""
        if self._index == len(self._sizes):
            raise ValueError("every tensor has been written")
        name, size = self._sizes[self._index]
        self._written += len(data)
        if self._written > size:
            raise ValueError(f"tensor {name} takes {size} bytes, not {self._written}")
        self._out.write(data)
        if self._written == size:
            _pad(self._out, -size % self._alignment)
            self._index += 1
            self._written = 0

    def close(self) -> None:
        """Raises ValueError unless every tensor is complete."""
        if self._index < len(self._sizes):
            raise ValueError(f"tensor {self._sizes[self._index][0]} is not complete")


@contextmanager
def writing(
    path: str | os.PathLike[str],
    entries: Iterable[tuple[str, bytes]],
    tensors: Sequence[TensorSpec],
    alignment: int = DEFAULT_ALIGNMENT,
) -> Iterator[TensorWriter]:
    """Writes the header, then yields the writer of the tensors' bytes.

    `entries` are keys with their values as `encode_value`, `encode_array` or `Header.encoded` gives them. The file
    takes its name when the block ends well and every tensor is complete; otherwise nothing is left. Raises FileProblem.
    """
    keys = list(entries)
    head = bytearray(MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(keys)))
    for key, value in keys:
        head += _string(key) + value
    offset = 0
    for tensor in tensors:
        head += _string(tensor.name)
        head += struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        head += struct.pack("<IQ", tensor.type.id, offset)
        offset += tensor.nbytes + -tensor.nbytes % alignment
    with atomic_write(path) as out:
        out.write(head)
        _pad(out, -len(head) % alignment)
        writer = TensorWriter(out, tensors, alignment)
        yield writer
        writer.close()
