"""JSON values as b11192's JSON library writes them: constants stand in a grammar as this text."""

import json

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
    raise TypeError(f"{type(value).__name__} is not a value of JSON")


def _float(value: float) -> str:
    """The shortest digits that read back as `value`; plain from 0.0001 to 15 digits, with an exponent beyond."""
    sign = "-" if str(value).startswith("-") else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).rstrip("0")
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.lstrip("0")
    if not digits:
        return sign + "0.0"
    if len(digits) <= point <= 15:
        return f"{sign}{digits}{'0' * (point - len(digits))}.0"
    if 0 < point <= 15:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -4 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+03d}"
