"""The typed values of a GGUF header in Python.

| GGUF                     | Python                                                                  |
|--------------------------|-------------------------------------------------------------------------|
| integers, floats, bool   | `int`, `float`, `bool`                                                  |
| string                   | `str`; `bytes` when it is not UTF-8, so that no reader takes it for text |
| array of numbers         | `array` of that type code (`numpy.asarray` takes it without a copy)     |
| array of bools           | `array` of type code "B", each 0 or 1                                   |
| array of strings         | `StringArray`: the raw bytes of each, sliced from the header on access    |
| array of arrays          | `tuple`                                                                 |
"""

from array import array
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias, overload


class ValueType(IntEnum):
    """GGUF's value types with their numbers in the file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


VALUE_TYPES = {int(kind): kind for kind in ValueType}


# The format letter of `struct` and `array` for each type; all are little-endian in the file.
FORMATS = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    ValueType.BOOL: "?",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}


LENGTH_BYTES = 8
"""Each string of an array is preceded by its length, a u64."""


class StringArray(Sequence[bytes]):
    """The strings of one array, as the bytes in the file.

    Stores the offset of each string, so a vocabulary of 150,000 tokens costs no object per token until it is read.
    """

    __slots__ = ("_source", "_starts")

    def __init__(self, source: bytes | bytearray, starts: "array[int]") -> None:
        """`starts`: the offset of each string's bytes in `source`, consecutive; its length is the u64 before them."""
        self._source = source
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self._cut(start) for start in self._starts[index]]
        return self._cut(self._starts[index])

    def __iter__(self) -> Iterator[bytes]:
        """All strings, faster than by index: each ends before the length of the next one."""
        if not self._starts:
            return
        source = bytes(self._source)
        for start, following in pairwise(self._starts):
            yield source[start : following - LENGTH_BYTES]
        yield self._cut(self._starts[-1])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StringArray of {len(self)}"

    def _cut(self, start: int) -> bytes:
        length = int.from_bytes(self._source[start - LENGTH_BYTES : start], "little")
        return bytes(self._source[start : start + length])


def number_array(kind: ValueType, raw: bytes | memoryview) -> "array[int] | array[float]":
    """The numbers of an array from its bytes; the machine is little-endian, as the file is."""
    numbers: array[int] = array("B" if kind is ValueType.BOOL else FORMATS[kind])
    numbers.frombytes(raw)
    return numbers


Scalar = int | float | bool | str | bytes
Value: TypeAlias = "Scalar | array[int] | array[float] | StringArray | tuple[Value, ...]"


def describe(value: Value) -> str:
    """The kind of a value, for a message that it should be another."""
    if isinstance(value, bool):
        return "a bool"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a float"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bytes):
        return "a string that is not UTF-8"
    return "an array"


def shown(text: str | bytes) -> str:
    """A name from a file for a message: quoted, escaped, at most 60 characters."""
    if isinstance(text, bytes):
        text = text[:400].decode("utf-8", "backslashreplace")
    cut = text if len(text) <= 60 else text[:57] + "..."
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut) + "'"


def shown_value(value: "Value | None") -> str:
    """A value from a file for a message: short, or its kind."""
    if isinstance(value, str | bytes):
        return shown(value)
    return str(value) if value is None or isinstance(value, int | float) else describe(value)
