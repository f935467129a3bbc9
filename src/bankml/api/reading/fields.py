"""Readers of one field of a request's JSON object. Each error names the field, what is accepted and what was received.

`null` is the same as leaving the field out, as in llama-server. A path such as `stream_options.include_usage` is
written as the client would write it. Every reader raises RequestError.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from bankml.api.reading.json_body import kind
from bankml.errors import RequestError
from bankml.sampling.numbers import INT32_MAX, float32
from bankml.sampling.overrides import NumberRange

__all__ = ["INT32_MAX", "boolean", "integer", "kind_of", "mapping", "parameter", "refuse", "shown", "string"]


def refuse(path: str, why: str) -> RequestError:
    """The error about one field."""
    return RequestError(f"Field '{path}': {why}")


def shown(value: object) -> str:
    """`value` on one line and shortened, for a message; of a user's text at most 40 characters."""
    if isinstance(value, str):
        return json.dumps(value if len(value) <= 40 else value[:40] + "…", ensure_ascii=False)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else kind(value)


def kind_of(value: object) -> str:
    """The JSON type of `value` in the words of llama-server's messages."""
    return "a boolean" if isinstance(value, bool) else kind(value)


def boolean(body: Mapping[str, Any], name: str, default: bool, path: str | None = None) -> bool:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise refuse(path or name, f"expected true or false, but got {shown(value)}")
    return value


def integer(body: Mapping[str, Any], names: tuple[str, ...], default: int, least: int, most: int) -> int:
    """The first of `names` that is present; a fraction is truncated, as in llama-server. The range is inclusive."""
    name = next((name for name in names if body.get(name) is not None), None)
    if name is None:
        return default
    value = body[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refuse(name, f"expected a number, but got {shown(value)}")
    number = int(value)
    if not least <= number <= most:
        got = number if abs(number) < 10**20 else value
        raise refuse(name, f"Value must be between {least} <= value <= {most}, but got {got}")
    return number


def string(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise refuse(name, f"expected a string, but got {shown(value)}")
    return value


def mapping(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refuse(name, f"expected an object, but got {shown(value)}")
    return value


def parameter(value: Any, path: str, limits: NumberRange) -> int | float:
    """A numeric sampling parameter, read as llama-server reads it: of a number for an integer the fraction is
    truncated, a float is rounded to 32 bits, and a value outside the soft range is moved into it. Messages about the
    hard range are llama-server's."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refuse(path, f"Value must be a number, but got {kind_of(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise refuse(path, f"Value must be a finite number, but got {value}")
    if limits.type is int:
        number: int | float = int(value)
        low, high, got = f"{limits.low}", f"{limits.high}", _digits(number)
    else:
        try:
            number = float32(float(value))
        except OverflowError:
            raise refuse(path, f"Value must fit a 32-bit float, but got {_digits(value)}") from None
        low, high, got = f"{limits.low:f}", f"{limits.high:f}", f"{number:f}"
    if not limits.low <= number <= limits.high:
        raise refuse(path, f"Value must be between {low} <= value <= {high}, but got {got}")
    return limits.clamped(number)


def _digits(value: float) -> str:
    """A number for a message; an integer of very many digits by its size."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"a number of {value.bit_length()} bits"
    return str(value)
