"""Reads the header of an untrusted GGUF v3 file.

Nothing is allocated from a number in the file before the file's size confirms it, and a header may ask for no more
work than `MAX_HEADER_BYTES`, `MAX_ENTRIES` and `MAX_STRINGS` allow: real ones stay far below each.
"""

import os
import struct
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import BinaryIO, NoReturn

from bankml.errors import FileProblem, Refused, Truncated
from bankml.files import open_regular, problem
from bankml.gguf.block_types import BLOCK_TYPES, GGML_TYPE_COUNT
from bankml.gguf.layout import TensorInfo as TensorInfo  # noqa: PLC0414 - other rooms import it from here
from bankml.gguf.layout import layout_problem, name_problem
from bankml.gguf.values import FORMATS, VALUE_TYPES, StringArray, Value, ValueType, describe, number_array, shown

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

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_COUNTS = struct.Struct("<QQ")
_SCALARS = {kind: struct.Struct("<" + letter) for kind, letter in FORMATS.items()}
_TENSORS = [struct.Struct(f"<{n_dims}QIQ") for n_dims in range(MAX_DIMS + 1)]  # shape, type, offset


class BadHeader(Refused):
    """A header that is wrong; `reason` says how, without the file's name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Header:
    """A header in which every number has been checked. The last value of a repeated key counts."""

    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    alignment: int
    file_size: int
    _spans: Mapping[str, tuple[int, int]] = field(repr=False)
    _source: bytearray = field(repr=False)

    @property
    def prefix(self) -> bytearray:
        """The file's first bytes as they were read, once: the header and some of what follows. Do not change them."""
        return self._source

    def encoded(self, key: str) -> bytes:
        """The encoded value of `key` in the file, with its type before it."""
        start, end = self._spans[key]
        return bytes(self._source[start:end])


def read_header(path: str | os.PathLike[str]) -> Header:
    """Reads and checks the header of the file at `path`.

    Raises BadHeader (exit 2) for what no GGUF header may say, Truncated (exit 3) when the file ends inside its header,
    and FileProblem (exit 1) when it is not a regular file or cannot be read.
    """
    with open_regular(path) as file:
        return read_header_from(file, os.path.basename(path))


def read_header_from(file: BinaryIO, name: str) -> Header:
    """As `read_header`, of an open unbuffered file; `name` is its name in messages."""
    try:
        size = os.fstat(file.fileno()).st_size
        return _HeaderReader(file, name, size).header()
    except OSError as error:
        raise problem("read", name, error) from error


class _HeaderReader:
    """Parses one header. `_at` is the next byte to parse; `_bytes` has been read from the file so far."""

    def __init__(self, file: BinaryIO, name: str, size: int) -> None:
        self._file = file
        self._name = name
        self._size = size
        self._bytes = bytearray()
        self._fetched = 0  # len(self._bytes), which is looked at for every value
        self._at = 0
        self._strings = 0
        self._text_bytes = 0
        self._arrays = 0

    def header(self) -> Header:
        self._preamble()
        n_tensors, n_keys = _COUNTS.unpack_from(self._bytes, self._need(_COUNTS.size))
        self._count("tensors", n_tensors)
        self._count("keys", n_keys)
        self._room(self._at + n_keys * LEAST_KEY_BYTES + n_tensors * LEAST_TENSOR_BYTES)

        metadata: dict[str, Value] = {}
        spans: dict[str, tuple[int, int]] = {}
        for index in range(n_keys):
            key = self._name_of("key", index, MAX_KEY_BYTES)
            start = self._at
            metadata[key] = self._value(key, self._value_type(key), depth=0)
            spans[key] = (start, self._at)
        alignment = self._alignment(metadata)
        tensors = tuple([self._tensor(index, alignment) for index in range(n_tensors)])
        data_offset = -(-self._at // alignment) * alignment
        if reason := name_problem(tensors) or layout_problem(tensors, self._size - data_offset, alignment):
            raise self._refuse(reason)
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

    # Reading

    def _refuse(self, reason: str) -> BadHeader:
        return BadHeader(self._name, reason)

    def _room(self, end: int) -> None:
        """Raises BadHeader or Truncated unless the header may and does reach byte `end`."""
        if end > MAX_HEADER_BYTES:
            raise self._refuse(f"the header would take {end} bytes or more, past the {MAX_HEADER_BYTES} that are read")
        if end > self._size:
            raise Truncated(f"{self._name}: guard needs {end} header bytes: file truncated", end)

    def _need(self, count: int) -> int:
        """Ensures that the next `count` bytes are fetched; returns their start and moves past them."""
        start = self._at
        end = start + count
        if end > self._fetched:
            self._fetch(end)
        self._at = end
        return start

    def _fetch(self, end: int) -> None:
        """Reads on to byte `end` and some way beyond: at least 256 KiB, and half as much again as is there.

        Raises BadHeader, Truncated.
        """
        self._room(end)
        goal = min(self._size, MAX_HEADER_BYTES, max(end, len(self._bytes) * 3 // 2, 1 << 18))
        while len(self._bytes) < goal:
            part = self._file.read(goal - len(self._bytes))
            if not part:
                raise FileProblem(f"{self._name} became shorter while it was read")
            self._bytes += part
        self._fetched = len(self._bytes)

    def _u32(self) -> int:
        value: int = _U32.unpack_from(self._bytes, self._need(4))[0]
        return value

    def _u64(self) -> int:
        value: int = _U64.unpack_from(self._bytes, self._need(8))[0]
        return value

    def _count(self, what: str, count: int) -> None:
        if count > MAX_ENTRIES:
            raise self._refuse(f"the header announces {count} {what}, more than the {MAX_ENTRIES} that are read")

    # The parts of a header, in the order of the file

    def _preamble(self) -> None:
        head = min(self._size, len(MAGIC))
        start = self._need(head)
        if bytes(self._bytes[start : start + head]) != MAGIC[:head]:
            raise self._refuse(f"bad magic {shown(bytes(self._bytes[:head]))}: not a GGUF file")
        self._room(FIXED_BYTES)
        version = self._u32()
        if version != VERSION and int.from_bytes(version.to_bytes(4, "big"), "little") == VERSION:
            raise self._refuse("the file is big-endian GGUF: only little-endian files are read")
        if version != VERSION:
            raise self._refuse(f"GGUF version {version}: only version {VERSION} is read")

    # A header may have 65,536 keys, so these three compare with `_fetched` themselves, and a refusal's words are put
    # together only where there is one.

    def _string(self, what: str, name: object, limit: int) -> bytearray:
        at = self._at + 8
        if at > self._fetched:
            self._fetch(at)
        length: int = _U64.unpack_from(self._bytes, at - 8)[0]
        if length > limit:
            raise self._refuse(f"{what} {_quoted(name)} would be {length} bytes long, past the {limit} that are read")
        self._text_bytes += length
        if self._text_bytes > MAX_TEXT_BYTES:
            raise self._refuse(
                f"{what} {_quoted(name)} brings the header past the {MAX_TEXT_BYTES} bytes of text that are read"
            )
        end = at + length
        if end > self._fetched:
            self._fetch(end)
        self._at = end
        return self._bytes[at:end]

    def _name_of(self, what: str, index: int, limit: int) -> str:
        raw = self._string(f"the name of {what}", index, limit)
        if not raw:
            raise self._refuse(f"{what} {index} has an empty name")
        if 0 in raw:
            raise self._refuse(f"{what} {index} has a NUL in its name {shown(bytes(raw))}")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self._refuse(f"{what} {index} has a name that is not UTF-8: {shown(bytes(raw))}") from error

    def _value_type(self, key: str) -> ValueType:
        at = self._at
        self._at = at + 4
        if self._at > self._fetched:
            self._fetch(self._at)
        number: int = _U32.unpack_from(self._bytes, at)[0]
        kind = VALUE_TYPES.get(number)
        if kind is None:
            raise self._refuse(f"key {shown(key)} has unknown value type {number}")
        return kind

    def _value(self, key: str, kind: ValueType, depth: int) -> Value:
        if kind is ValueType.STRING:
            raw = self._string("the string of key", key, MAX_TEXT_BYTES)
            try:
                return raw.decode()
            except UnicodeDecodeError:
                return bytes(raw)
        if kind is ValueType.ARRAY:
            return self._array(key, depth + 1)
        if kind is ValueType.BOOL:
            start = self._need(1)
            self._check_bools(key, start, start + 1)
            return bool(self._bytes[start])
        scalar = _SCALARS[kind]
        value: int | float = scalar.unpack_from(self._bytes, self._need(scalar.size))[0]
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
        count = self._u64()
        if kind is ValueType.STRING:
            return self._string_array(key, count)
        if kind is ValueType.ARRAY:
            self._arrays += count
            self._count(f"arrays within arrays at key {shown(key)}", self._arrays)
            return tuple(self._array(key, depth + 1) for _ in range(count))
        length = count * _SCALARS[kind].size
        start = self._need(length)
        if kind is ValueType.BOOL:
            self._check_bools(key, start, start + length)
        # A view, not a copy; it is released before the buffer grows again.
        with memoryview(self._bytes) as view:
            return number_array(kind, view[start : start + length])

    def _string_array(self, key: str, count: int) -> StringArray:
        self._strings += count
        if self._strings > MAX_STRINGS:
            raise self._refuse(f"key {shown(key)} brings the header past the {MAX_STRINGS} strings that are read")
        self._room(self._at + 8 * count)
        starts = array("Q", bytes(8 * count))
        length_at = _U64.unpack_from
        source, at = self._bytes, self._at
        last = len(source) - 8
        for index in range(count):
            # Every vocabulary passes through this loop, so it compares once per string: a string that ends beyond the
            # fetched bytes is noticed at the next length, or after the loop.
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
        name = self._name_of("tensor", index, MAX_NAME_BYTES)
        n_dims = self._u32()
        if not 1 <= n_dims <= MAX_DIMS:
            raise self._refuse(f"tensor {shown(name)} has {n_dims} dimensions, not 1 to {MAX_DIMS}")
        packed = _TENSORS[n_dims]
        *extents, type_id, offset = packed.unpack_from(self._bytes, self._need(packed.size))
        shape = tuple(extents)
        elements = 1
        for dim, extent in enumerate(shape):
            elements *= extent
            if not 0 < extent <= MAX_INT64 or elements >= MAX_INT64:
                shape_text = " x ".join(map(str, shape))
                raise self._refuse(f"tensor {shown(name)} of shape {shape_text} has dimension {dim} out of range")
        type_ = BLOCK_TYPES.get(type_id) or self._unknown_type(name, type_id)
        if shape[0] % type_.weights:
            raise self._refuse(
                f"tensor {shown(name)} has rows of {shape[0]}, not whole {type_.name} blocks of {type_.weights}"
            )
        if offset % alignment:
            raise self._refuse(f"tensor {shown(name)} has offset {offset}, not a multiple of the alignment {alignment}")
        return TensorInfo(name, shape, type_, offset, type_.nbytes(elements))

    def _unknown_type(self, name: str, number: int) -> NoReturn:
        if number < GGML_TYPE_COUNT:
            raise self._refuse(f"tensor {shown(name)} has type id {number}, a layout that was withdrawn")
        raise self._refuse(
            f"tensor {shown(name)} has unknown type id {number}, past {GGML_TYPE_COUNT - 1} and of no known fork"
        )


def _quoted(name: object) -> str:
    """A key's name as a message shows it; a number as it is."""
    return shown(name) if isinstance(name, str) else str(name)
