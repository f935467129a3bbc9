"""Ranges of integers as GBNF, digit by digit, as b11192 writes them.

Where a range is open, a number has at most 16 digits. Some ranges are wider than requested ("at least 3" has
[1-2] with more digits, and "at most -5" has leading zeros): that is how b11192 writes them, and the text has to be
the same.
"""

from bankml.grammar.json_schema.problems import SchemaError

DIGITS = 16


def integer_range(minimum: int | None, maximum: int | None) -> str:
    """A rule for the integers from `minimum` to `maximum`, both included; at least one is not None."""
    return f"({_range(minimum, maximum, DIGITS, True)})"


def _range(minimum: int | None, maximum: int | None, digits: int, first: bool) -> str:
    """`first`: no digit precedes, so that a number must not begin with 0."""
    if minimum is not None and maximum is not None:
        return _closed(minimum, maximum)
    if minimum is not None:
        return _at_least(minimum, digits, first)
    if maximum is not None:
        return _at_most(maximum, digits, first)
    # Reached when a negated bound is the largest number of 64 bits, which counts as no bound.
    raise SchemaError("At least one of min_value or max_value must be set")


def _negated(bound: int) -> int | None:
    """`bound` negated, as an upper bound."""
    return None if -bound == 2**63 - 1 else -bound


def _closed(minimum: int, maximum: int) -> str:
    if maximum < 0:
        return f'"-" ({_range(-maximum, _negated(minimum), DIGITS, True)})' if minimum < 0 else _sizes(minimum, maximum)
    if minimum < 0:
        return f'"-" ({_range(0, _negated(minimum), DIGITS, True)}) | {_sizes(0, maximum)}'
    return _sizes(minimum, maximum)


def _sizes(minimum: int, maximum: int) -> str:
    """The range split where the number of digits grows."""
    low, high, parts = str(minimum), str(maximum), []
    for size in range(len(low), len(high)):
        parts.append(_same_size(low, "9" * size))
        low = "1" + "0" * size
    return " | ".join([*parts, _same_size(low, high)])


def _same_size(low: str, high: str) -> str:
    """Between two numbers of equal length: their common prefix, then the first digit that differs."""
    shared = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    begin = f'"{low[:shared]}"' if shared else ""
    if shared == min(len(low), len(high)):
        return begin
    rest = _from_digit(low[shared:], high[shared:])
    return f"{begin} {rest}" if begin else rest


def _from_digit(low: str, high: str) -> str:
    """Between two numbers whose first digits differ."""
    a, b, others = low[0], high[0], len(low) - 1
    if not others:
        return f"[{a}-{b}]"
    zeros, nines = "0" * others, "9" * others
    parts, reached = [], False
    if low[1:] == zeros:
        parts.append(f"{_digits(ord(a), ord(b) - 1)} {_more(others, others)}")
    else:
        parts.append(f"[{a}] ({_same_size(low[1:], nines)})")
        if ord(a) < ord(b) - 1:
            reached = high[1:] == nines
            parts.append(f"{_digits(ord(a) + 1, ord(b) - (not reached))} {_more(others, others)}")
    if not reached:
        parts.append(f"{_digits(ord(b), ord(b))} {_same_size(zeros, high[1:])}")
    return f"({' | '.join(parts)})"


def _at_least(minimum: int, digits: int, first: bool) -> str:
    fewer = max(digits - 1, 1)
    if minimum < 0:
        return f'"-" ({_range(None, _negated(minimum), digits, False)}) | [0] | [1-9] {_more(0, digits - 1)}'
    if minimum == 0:
        return f"[0] | [1-9] {_more(0, fewer)}" if first else _more(1, digits)
    text = str(minimum)
    lead, least, parts = text[0], "1" if first else "0", []
    if minimum <= 9:
        if lead > least:
            parts.append(f"{_digits(ord(least), ord(lead) - 1)} {_more(1, fewer)}")
        return " | ".join([*parts, f"{_digits(ord(lead), ord('9'))} {_more(0, fewer)}"])
    if lead > "1":
        parts.append(f"{_digits(ord(least), ord(lead) - 1)} {_more(len(text), fewer)}")
    parts.append(f"[{lead}] ({_at_least(int(text[1:]), fewer, False)})")
    if lead < "9":
        parts.append(f"{_digits(ord(lead) + 1, ord('9'))} {_more(len(text) - 1, fewer)}")
    return " | ".join(parts)


def _at_most(maximum: int, digits: int, first: bool) -> str:
    if maximum < 0:
        return f'"-" ({_range(-maximum, None, digits, False)})'
    negative = f'"-" [1-9] {_more(0, max(digits - 1, 1))} | ' if first else ""
    return negative + _range(0, maximum, digits, True)


def _digits(least: int, most: int) -> str:
    """The characters between two codes."""
    return f"[{chr(least)}]" if least == most else f"[{chr(least)}-{chr(most)}]"


def _more(least: int, most: int) -> str:
    """Any digits, from `least` to `most` of them."""
    if least == most:
        return "[0-9]" if least == 1 else f"[0-9]{{{least}}}"
    return f"[0-9]{{{least},{most}}}"
