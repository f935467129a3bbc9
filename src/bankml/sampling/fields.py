"""Reads one field of a request's JSON body: its type, its range, and the sentence that refuses it.

A field that is absent or null gives None, so that the default stands. Numbers are read as llama-server reads them: a
fraction given for a whole number is cut off, a float is rounded to 32 bits. The sentences for a value outside hard
limits are llama-server's.
"""

import math
import struct
from collections.abc import Mapping
from typing import Any, NoReturn

from bankml.errors import RequestError

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)


def float32(value: float) -> float:
    """`value` rounded to 32 bits. Raises OverflowError when that is not finite."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    if not math.isfinite(rounded):
        raise OverflowError(value)
    return rounded


def refuse(field: str, sentence: str) -> NoReturn:
    raise RequestError(f"Field '{field}': {sentence}")


def kind_of(value: object) -> str:
    """What a JSON value is, in words for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _number(body: Mapping[str, Any], field: str) -> int | float | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(field, f"Value must be a number, but got {kind_of(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        refuse(field, f"Value must be a finite number, but got {value}")
    return value


def integer(body: Mapping[str, Any], field: str, low: int, high: int) -> int | None:
    """A whole number from `low` to `high`; anything else is a RequestError."""
    value = _number(body, field)
    if value is None:
        return None
    whole = int(value)
    if not low <= whole <= high:
        refuse(field, f"Value must be between {low} <= value <= {high}, but got {_shown(whole)}")
    return whole


def clamped_integer(body: Mapping[str, Any], field: str, low: int, high: int) -> int | None:
    """A whole 32-bit number, moved into `low` .. `high`."""
    value = integer(body, field, INT32_MIN, INT32_MAX)
    return None if value is None else max(low, min(high, value))


def real(body: Mapping[str, Any], field: str) -> float | None:
    """A finite 32-bit float."""
    value = _number(body, field)
    if value is None:
        return None
    try:
        return float32(float(value))
    except OverflowError:
        refuse(field, f"Value must fit a 32-bit float, but got {_shown(value)}")


def clamped_real(body: Mapping[str, Any], field: str, low: float, high: float = math.inf) -> float | None:
    """A finite 32-bit float, moved into `low` .. `high`."""
    value = real(body, field)
    return None if value is None else max(low, min(high, value))


def boolean(body: Mapping[str, Any], field: str) -> bool | None:
    value = body.get(field)
    if value is None or isinstance(value, bool):
        return value
    refuse(field, f"Value must be a boolean, but got {kind_of(value)}")


def _shown(value: float) -> str:
    """A number as a message shows it: one of very many digits by its size."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"a number of {value.bit_length()} bits"
    return str(value)
