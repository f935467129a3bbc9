"""Reads the header of a GGUF v3 file that nobody vouches for.

Nothing is allocated from a number in the file before the file's size bears it out, and a header may ask for no more
work than `MAX_HEADER_BYTES`, `MAX_ENTRIES` and `MAX_STRINGS` allow: real ones stay far below each.
A tensor's place is checked as llama.cpp b11192 checks it: whole rows of blocks, aligned, one after another in the order
of the header, inside the file.
"""

import errno
import os
import stat
import struct
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import BinaryIO

from bankml.errors import FileProblem, Refused, Truncated
from bankml.files import problem, unreadable
from bankml.gguf.block_types import BLOCK_TYPES, GGML_TYPE_COUNT, LEGACY_Q2_0, Q2_0, BlockType
from bankml.gguf.values import FORMATS, StringArray, Value, ValueType, describe, number_array, shown

MAGIC = b"GGUF"
VERSION = 3
DEFAULT_ALIGNMENT = 32
FIXED_BYTES = 24  # magic, version, tensor count, key count
LEAST_KEY_BYTES = 8 + 1 + 4 + 1  # a name of one byte and a value of one byte
LEAST_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8  # a name of one byte and one dimension

MAX_HEADER_BYTES = 64 << 20
MAX_ENTRIES = 1 << 16  # keys, tensors, and arrays within arrays, each
MAX_STRINGS = 1 << 21  # in arrays, all together
MAX_KEY_BYTES = 65_535
MAX_TEXT_BYTES = 16 << 20  # keys and strings outside arrays, all together: as text each byte may take four
MAX_NAME_BYTES = 63  # GGML_MAX_NAME less its NUL
MAX_DIMS = 4
MAX_NESTING = 64
MAX_INT64 = (1 << 63) - 1

ALIGNMENT_KEY = "general.alignment"


class BadHeader(Refused):
    """A header that is wrong; `reason` says how, without the file's name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class TensorInfo:
    """One tensor as the header gives it: `shape` with the row length (ne0) first, `offset` from the data's start."""

    name: str
    shape: tuple[int, ...]
    type: BlockType
    offset: int
    nbytes: int

    @property
    def elements(self) -> int:
        product = 1
        for extent in self.shape:
            product *= extent
        return product


@dataclass(frozen=True, eq=False)
class Header:
    """A header whose every number has been checked. Of a key that stands twice the last value counts."""

    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    alignment: int
    file_size: int
    _spans: Mapping[str, tuple[int, int]] = field(repr=False)
    _source: bytearray = field(repr=False)

    def encoded(self, key: str) -> bytes:
        """The value of `key` as it stands in the file, its type before it."""
        start, end = self._spans[key]
        return bytes(self._source[start:end])


def read_header(path: str | os.PathLike[str]) -> Header:
    """Reads and checks the header of the file at `path`.

    Raises BadHeader (exit 2) for what no GGUF header may say, Truncated (exit 3) when the file ends inside its header,
    and FileProblem (exit 1) when it is not a regular file or cannot be read.
    """
    with open_regular(path) as file:
        return read_header_from(file, os.path.basename(path))


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Opens a regular file to read; never waits for a FIFO's other end. Without `follow` a symbolic link is not opened.
    Raises FileProblem."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError):
            raise FileProblem(f"cannot read {os.fspath(path)!r}: not a file name") from error
        if not follow and error.errno == errno.ELOOP and os.path.islink(path):
            raise unreadable(path, "a symbolic link") from error
        raise problem("read", path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise unreadable(path, "not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


def read_header_from(file: BinaryIO, name: str) -> Header:
    """As `read_header`, of an open unbuffered file; `name` is what the sentences call it."""
    try:
        size = os.fstat(file.fileno()).st_size
        return _HeaderReader(file, name, size).header()
    except OSError as error:
        raise problem("read", name, error) from error


class _HeaderReader:
    """One walk through one header. `_at` is the next byte to read; `_bytes` is what has been fetched so far."""

    def __init__(self, file: BinaryIO, name: str, size: int) -> None:
        self._file = file
        self._name = name
        self._size = size
        self._bytes = bytearray()
        self._at = 0
        self._strings = 0
        self._text_bytes = 0
        self._arrays = 0

    def header(self) -> Header:
        self._preamble()
        n_tensors, n_keys = self._integer("Q"), self._integer("Q")
        self._count("tensors", n_tensors)
        self._count("keys", n_keys)
        self._room(self._at + n_keys * LEAST_KEY_BYTES + n_tensors * LEAST_TENSOR_BYTES)

        metadata: dict[str, Value] = {}
        spans: dict[str, tuple[int, int]] = {}
        for index in range(n_keys):
            key = self._key(index)
            start = self._at
            metadata[key] = self._value(key, self._value_type(key), depth=0)
            spans[key] = (start, self._at)
        alignment = self._alignment(metadata)
        tensors = tuple([self._tensor(index, alignment) for index in range(n_tensors)])
        data_offset = -(-self._at // alignment) * alignment
        self._check_names(tensors)
        self._check_layout(tensors, data_offset, alignment)
        return Header(
            VERSION,
            MappingProxyType(metadata),
            tensors,
            data_offset,
            alignment,
            self._size,
            MappingProxyType(spans),
            self._bytes,
        )

    # What the walk is made of

    def _refuse(self, reason: str) -> BadHeader:
        return BadHeader(self._name, reason)

    def _room(self, end: int) -> None:
        """Refuses, or asks for more bytes, unless the header may and does reach up to byte `end`."""
        if end > MAX_HEADER_BYTES:
            raise self._refuse(f"the header would take {end} bytes or more, past the {MAX_HEADER_BYTES} that are read")
        if end > self._size:
            raise Truncated(f"{self._name}: guard needs {end} header bytes: file truncated", end)

    def _need(self, count: int) -> int:
        """Sees to it that the next `count` bytes are fetched; returns where they start and moves past them."""
        start, end = self._at, self._at + count
        if end > len(self._bytes):
            self._room(end)
            self._fetch(end)
        self._at = end
        return start

    def _fetch(self, end: int) -> None:
        """Reads on to byte `end` and some way beyond: at least 256 KiB, and half as much again as is there."""
        goal = min(self._size, MAX_HEADER_BYTES, max(end, len(self._bytes) * 3 // 2, 1 << 18))
        while len(self._bytes) < goal:
            part = self._file.read(goal - len(self._bytes))
            if not part:
                raise FileProblem(f"{self._name} became shorter while it was read")
            self._bytes += part

    def _integer(self, letter: str) -> int:
        value: int = struct.unpack_from("<" + letter, self._bytes, self._need(struct.calcsize("<" + letter)))[0]
        return value

    def _count(self, what: str, count: int) -> None:
        if count > MAX_ENTRIES:
            raise self._refuse(f"the header announces {count} {what}, more than the {MAX_ENTRIES} that are read")

    # Its parts, in the order of the file

    def _preamble(self) -> None:
        head = min(self._size, len(MAGIC))
        start = self._need(head)
        if bytes(self._bytes[start : start + head]) != MAGIC[:head]:
            raise self._refuse(f"bad magic {shown(bytes(self._bytes[:head]))}: not a GGUF file")
        self._room(FIXED_BYTES)
        version = self._integer("I")
        if version != VERSION and int.from_bytes(version.to_bytes(4, "big"), "little") == VERSION:
            raise self._refuse("the file is big-endian GGUF: only little-endian files are read")
        if version != VERSION:
            raise self._refuse(f"GGUF version {version}: only version {VERSION} is read")

    def _string(self, what: str, limit: int) -> bytes:
        length = self._integer("Q")
        if length > limit:
            raise self._refuse(f"{what} would be {length} bytes long, past the {limit} that are read")
        self._text_bytes += length
        if self._text_bytes > MAX_TEXT_BYTES:
            raise self._refuse(f"{what} brings the header past the {MAX_TEXT_BYTES} bytes of text that are read")
        start = self._need(length)
        return bytes(self._bytes[start : start + length])

    def _name_text(self, what: str, raw: bytes) -> str:
        if not raw:
            raise self._refuse(f"{what} has an empty name")
        if b"\0" in raw:
            raise self._refuse(f"{what} has a NUL in its name {shown(raw)}")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self._refuse(f"{what} has a name that is not UTF-8: {shown(raw)}") from error

    def _key(self, index: int) -> str:
        what = f"key {index}"
        return self._name_text(what, self._string(f"the name of {what}", MAX_KEY_BYTES))

    def _value_type(self, key: str) -> ValueType:
        number = self._integer("I")
        try:
            return ValueType(number)
        except ValueError as error:
            raise self._refuse(f"key {shown(key)} has unknown value type {number}") from error

    def _value(self, key: str, kind: ValueType, depth: int) -> Value:
        if kind is ValueType.STRING:
            raw = self._string(f"the string of key {shown(key)}", MAX_TEXT_BYTES)
            try:
                return raw.decode()
            except UnicodeDecodeError:
                return raw
        if kind is ValueType.ARRAY:
            return self._array(key, depth + 1)
        if kind is ValueType.BOOL:
            start = self._need(1)
            self._check_bools(key, start, start + 1)
            return bool(self._bytes[start])
        letter = FORMATS[kind]
        value: int | float = struct.unpack_from("<" + letter, self._bytes, self._need(struct.calcsize(letter)))[0]
        return value

    def _check_bools(self, key: str, start: int, end: int) -> None:
        for at in range(start, end, 1 << 20):
            odd = self._bytes[at : min(end, at + (1 << 20))].translate(None, b"\0\1")
            if odd:
                raise self._refuse(f"key {shown(key)} has a bool of {odd[0]}, neither 0 nor 1")

    def _array(self, key: str, depth: int) -> Value:
        if depth > MAX_NESTING:
            raise self._refuse(f"key {shown(key)} has arrays nested deeper than {MAX_NESTING}")
        kind = self._value_type(key)
        count = self._integer("Q")
        if kind is ValueType.STRING:
            return self._string_array(key, count)
        if kind is ValueType.ARRAY:
            self._arrays += count
            self._count(f"arrays within arrays at key {shown(key)}", self._arrays)
            return tuple(self._array(key, depth + 1) for _ in range(count))
        letter = FORMATS[kind]
        length = count * struct.calcsize(letter)
        start = self._need(length)
        if kind is ValueType.BOOL:
            self._check_bools(key, start, start + length)
        # A view, not a copy; it is gone before the buffer grows again.
        with memoryview(self._bytes) as view:
            return number_array(kind, view[start : start + length])

    def _string_array(self, key: str, count: int) -> StringArray:
        self._strings += count
        if self._strings > MAX_STRINGS:
            raise self._refuse(f"key {shown(key)} brings the header past the {MAX_STRINGS} strings that are read")
        self._room(self._at + 8 * count)
        starts = array("Q", bytes(8 * count))
        length_at = struct.Struct("<Q").unpack_from
        source, at = self._bytes, self._at
        last = len(source) - 8
        for index in range(count):
            # Every vocabulary goes through this loop, so it compares once a string: a string that ends past what has
            # been fetched is found out when the next length is looked for, or after the loop.
            if at > last:
                self._at = at
                self._need(8)
                last = len(source) - 8
            (length,) = length_at(source, at)
            at += 8
            starts[index] = at
            at += length
        self._at = at
        self._need(0)
        return StringArray(source, starts)

    def _alignment(self, metadata: Mapping[str, Value]) -> int:
        value = metadata.get(ALIGNMENT_KEY, DEFAULT_ALIGNMENT)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._refuse(f"{ALIGNMENT_KEY} is {describe(value)}, not a positive integer")
        if value <= 0 or value & (value - 1) or value > 1 << 31:
            raise self._refuse(f"{ALIGNMENT_KEY} is {value}, not a power of two from 1 to {1 << 31}")
        return value

    def _tensor(self, index: int, alignment: int) -> TensorInfo:
        what = f"tensor {index}"
        name = self._name_text(what, self._string(f"the name of {what}", MAX_NAME_BYTES))
        n_dims = self._integer("I")
        if not 1 <= n_dims <= MAX_DIMS:
            raise self._refuse(f"tensor {shown(name)} has {n_dims} dimensions, not 1 to {MAX_DIMS}")
        shape = tuple(self._integer("Q") for _ in range(n_dims))
        elements = 1
        for dim, extent in enumerate(shape):
            elements *= extent
            if not 0 < extent <= MAX_INT64 or elements >= MAX_INT64:
                shape_text = " x ".join(map(str, shape))
                raise self._refuse(f"tensor {shown(name)} of shape {shape_text} has dimension {dim} out of range")
        type_ = self._block_type(name, self._integer("I"))
        if shape[0] % type_.weights:
            raise self._refuse(
                f"tensor {shown(name)} has rows of {shape[0]}, not whole {type_.name} blocks of {type_.weights}"
            )
        offset = self._integer("Q")
        if offset % alignment:
            raise self._refuse(f"tensor {shown(name)} has offset {offset}, not a multiple of the alignment {alignment}")
        return TensorInfo(name, shape, type_, offset, type_.nbytes(elements))

    def _block_type(self, name: str, number: int) -> BlockType:
        known = BLOCK_TYPES.get(number)
        if known is not None:
            return known
        if number < GGML_TYPE_COUNT:
            raise self._refuse(f"tensor {shown(name)} has type id {number}, a layout that was withdrawn")
        raise self._refuse(
            f"tensor {shown(name)} has unknown type id {number}, past {GGML_TYPE_COUNT - 1} and of no known fork"
        )

    def _check_names(self, tensors: tuple[TensorInfo, ...]) -> None:
        seen: set[str] = set()
        for tensor in tensors:
            if tensor.name in seen:
                raise self._refuse(f"two tensors have the name {shown(tensor.name)}")
            seen.add(tensor.name)

    def _check_layout(self, tensors: tuple[TensorInfo, ...], data_offset: int, alignment: int) -> None:
        """Each tensor begins where the one before it ends, padded to the alignment, and ends inside the file."""
        expected = 0
        for index, tensor in enumerate(tensors):
            if tensor.offset < expected and index:
                raise self._refuse(self._short(tensors[index - 1], tensor.offset - tensors[index - 1].offset))
            if tensor.offset != expected:
                raise self._refuse(
                    f"tensor {shown(tensor.name)} has offset {tensor.offset} where {expected} is expected"
                )
            available = self._size - data_offset - tensor.offset
            if tensor.nbytes > available:
                following = tensors[index + 1].offset - tensor.offset if index + 1 < len(tensors) else available
                raise self._refuse(self._short(tensor, min(following, available)))
            expected += -(-tensor.nbytes // alignment) * alignment

    def _short(self, tensor: TensorInfo, available: int) -> str:
        """Why a tensor does not have the bytes that its shape and type need."""
        have = max(available, 0)
        name = shown(tensor.name)
        if (
            tensor.type is Q2_0
            and tensor.shape[0] % LEGACY_Q2_0.weights == 0
            and have >= LEGACY_Q2_0.nbytes(tensor.elements)
        ):
            return (
                f"tensor {name} has {have} bytes, Q2_0 in groups of 64 needs {tensor.nbytes}: a legacy group-128 file"
            )
        return f"tensor {name} needs {tensor.nbytes} bytes and has {have} before the next tensor or the end of the file"
