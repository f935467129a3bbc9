"""JSON values as b11192's JSON library writes them: constants in a grammar have this text."""

import json
import math

from bankml.grammar.json_schema.float_digits import float_digits

U64 = range(-(2**63), 2**64)


def json_text(value: object) -> str:
    """`value` without white space, its keys in order; 2.0 stays "2.0"."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return str(value) if value in U64 else _float(float(value))
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{json_text(one)}" for key, one in value.items()) + "}"
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def count_values(value: object) -> int:
    """The number of values in `value`: itself and those of arrays and objects."""
    if isinstance(value, dict):
        return 1 + sum(map(count_values, value.values()))
    return 1 + sum(map(count_values, value)) if isinstance(value, list) else 1


def _float(value: float) -> str:
    """Plain from 0.0001 to 15 digits before the point, with an exponent beyond."""
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if not value:
        return sign + "0.0"
    digits, last = float_digits(abs(value))
    point = len(digits) + last
    if last >= 0 and point <= 15:
        return f"{sign}{digits}{'0' * last}.0"
    if 0 < point <= 15:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -4 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+03d}"
