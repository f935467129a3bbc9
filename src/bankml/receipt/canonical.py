"""JSON in one canonical form (RFC 8785): the bytes that a signature and a log's entry are about."""

import json
import math
from collections.abc import Mapping
from decimal import Decimal

MOST_EXACT = (1 << 53) - 1
"""The largest integer that every JSON parser reads exactly (RFC 7493)."""


def canonical_json(value: object) -> bytes:
    """`value` in UTF-8 without white space, its members sorted by their names in UTF-16, its numbers as ECMAScript
    writes them.

    Raises ValueError for what has no such form: NaN and infinities, integers beyond 2^53-1, lone surrogates, names that
    are not text, and types that JSON has not.
    """
    try:
        return _written(value).encode("utf-8")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _written(value: object) -> str:
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        if abs(value) > MOST_EXACT:
            raise ValueError(f"{value} is beyond 2^53-1, which not every JSON parser reads exactly")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("the name of a member is not text")
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_written(name)}:{_written(value[name])}" for name in names) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    raise ValueError(f"JSON has no {type(value).__name__}")


def _number(value: float) -> str:
    """ECMAScript's Number::toString. Python's repr has the same shortest digits, in another layout."""
    if not math.isfinite(value):
        raise ValueError(f"JSON has no number {value}")
    if value == 0:
        return "0"
    sign, found, _ = Decimal(repr(value)).as_tuple()
    exponent = Decimal(repr(value)).adjusted() + 1  # the value is 0.DIGITS times ten to this
    digits = "".join(map(str, found)).rstrip("0")
    minus = "-" if sign else ""
    if len(digits) <= exponent <= 21:
        return minus + digits.ljust(exponent, "0")
    if 0 < exponent <= 21:
        return f"{minus}{digits[:exponent]}.{digits[exponent:]}"
    if -6 < exponent <= 0:
        return f"{minus}0.{'0' * -exponent}{digits}"
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{minus}{mantissa}e{exponent - 1:+d}"
