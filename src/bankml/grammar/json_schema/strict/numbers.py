"""Exact ranges of integers and decimal numbers as GBNF, digit by digit."""

from decimal import Decimal

MAX_DIGITS = 16
"""Digits of an integer without an upper bound, and of a fraction."""

FRACTION = f'("." [0-9]{{1,{MAX_DIGITS}}})?'
SMALLEST_STEP = Decimal(1).scaleb(-MAX_DIGITS)


def integer_rule(low: int | None, high: int | None) -> str:
    """The integers from `low` to `high`, both included; None: no bound."""
    parts = []
    if high is None or high >= 0:
        parts += _natural(max(low or 0, 0), high)
    if low is None or low < 0:
        positive = _natural(max(1, 1 if high is None else -high), None if low is None else -low)
        parts += [f'"-" ({" | ".join(positive)})']
    return f"({' | '.join(parts)})"


def decimal_rule(low: Decimal | None, high: Decimal | None) -> str:
    """The decimal numbers from `low` to `high`, both included, without an exponent; None: no bound."""
    parts = []
    if high is None or high >= 0:
        parts += _non_negative(max(low or Decimal(0), Decimal(0)), high)
    if low is None or low < 0:
        least = Decimal(0) if high is None or high >= 0 else -high
        parts += [f'"-" ({" | ".join(_non_negative(least, None if low is None else -low))})']
    return f"({' | '.join(parts)})"


def _natural(low: int, high: int | None) -> list[str]:
    """The numbers from `low` on, without leading zeros, one alternative for each count of digits."""
    most = len(str(high)) if high is not None else max(MAX_DIGITS, len(str(low)))
    parts = []
    for size in range(len(str(low)), most + 1):
        first = max(low, 10 ** (size - 1) if size > 1 else 0)
        last = 10**size - 1 if high is None else min(high, 10**size - 1)
        if first <= last:
            parts.append(_same_size(str(first), str(last)))
    return parts


def _same_size(low: str, high: str) -> str:
    """The digit strings from `low` to `high`, which are as long."""
    if not low:
        return ""
    if set(low) == {"0"} and set(high) == {"9"}:
        return f"[0-9]{{{len(low)}}}"
    if low[0] == high[0]:
        return f'"{low[0]}" {_grouped(_same_size(low[1:], high[1:]))}'.strip()
    size = len(low) - 1
    parts = [f'"{low[0]}" {_grouped(_same_size(low[1:], "9" * size))}'.strip()]
    if int(low[0]) + 1 < int(high[0]):
        parts.append(f"[{int(low[0]) + 1}-{int(high[0]) - 1}] {_any_digits(size)}".strip())
    parts.append(f'"{high[0]}" {_grouped(_same_size("0" * size, high[1:]))}'.strip())
    return f"({' | '.join(parts)})"


def _any_digits(size: int) -> str:
    return f"[0-9]{{{size}}}" if size else ""


def _grouped(text: str) -> str:
    return text if not text or text[0] in '(["' else f"({text})"


def _non_negative(low: Decimal, high: Decimal | None) -> list[str]:
    low_whole, low_part = _split(low)
    if high is None:
        above = _natural(low_whole + 1, None)
        return [f"{_number(low_whole)} {_at_least(low_part)}", f"({' | '.join(above)}) {FRACTION}"]
    high_whole, high_part = _split(high)
    if low_whole == high_whole:
        return [f"{_number(low_whole)} {_between(low_part, high_part)}"]
    parts = [f"{_number(low_whole)} {_at_least(low_part)}"]
    if low_whole + 1 < high_whole:
        parts.append(f"({' | '.join(_natural(low_whole + 1, high_whole - 1))}) {FRACTION}")
    return [*parts, f"{_number(high_whole)} {_at_most(high_part)}"]


def _split(value: Decimal) -> tuple[int, str]:
    """The whole part, and the digits of the fraction without zeros at the end."""
    whole, _, part = format(value, "f").partition(".")
    return int(whole), part.rstrip("0")[:MAX_DIGITS]


def _number(value: int) -> str:
    return f'"{value}"'


def _at_least(digits: str) -> str:
    return FRACTION if not digits else f'"." {_digits_at_least(digits)}'


def _digits_at_least(digits: str) -> str:
    first, rest = int(digits[0]), digits[1:]
    parts = [f"[{first + 1}-9] [0-9]{{0,{MAX_DIGITS}}}"] if first < 9 else []
    parts.append(f'"{first}" {_digits_at_least(rest) if rest else f"[0-9]{{0,{MAX_DIGITS}}}"}')
    return f"({' | '.join(parts)})"


def _at_most(digits: str) -> str:
    return f'("." {_digits_at_most(digits)})?' if digits else f'("." [0]{{1,{MAX_DIGITS}}})?'


def _digits_at_most(digits: str) -> str:
    first, rest = int(digits[0]), digits[1:]
    parts = [f"[0-{first - 1}] [0-9]{{0,{MAX_DIGITS}}}"] if first else []
    parts.append(f'"{first}" {f"({_digits_at_most(rest)})?" if rest else f"[0]{{0,{MAX_DIGITS}}}"}')
    return f"({' | '.join(parts)})"


def _between(low: str, high: str) -> str:
    """Fractions from `low` to `high` behind the same whole part."""
    if not low:
        return _at_most(high)
    return f'"." {_digits_between(low, high)}'


def _digits_between(low: str, high: str) -> str:
    size = max(len(low), len(high))
    low, high = low.ljust(size, "0"), high.ljust(size, "0")
    if low[0] == high[0]:
        inner = _digits_between(low[1:], high[1:]) if size > 1 else f"[0]{{0,{MAX_DIGITS}}}"
        return f'("{low[0]}" {inner})'
    low_rest, high_rest = low[1:].rstrip("0"), high[1:].rstrip("0")
    tail = f"[0-9]{{0,{MAX_DIGITS}}}"
    parts = [f'"{low[0]}" {_digits_at_least(low_rest) if low_rest else tail}']
    if int(low[0]) + 1 < int(high[0]):
        parts.append(f"[{int(low[0]) + 1}-{int(high[0]) - 1}] {tail}")
    parts.append(f'"{high[0]}" {f"({_digits_at_most(high_rest)})?" if high_rest else f"[0]{{0,{MAX_DIGITS}}}"}')
    return f"({' | '.join(parts)})"
