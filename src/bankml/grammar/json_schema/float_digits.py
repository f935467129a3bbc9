"""Decimal digits of doubles by Loitsch's Grisu2 ("Printing Floating-Point Numbers Quickly and Accurately with
Integers", 2010).

It parses back exactly but is not always the shortest: about one double in 300 gets other digits than Python's repr
gives it. b11192's JSON library writes floats this way, so constants in a grammar need these digits.
"""

import math

LEAST_EXPONENT, MOST_EXPONENT = -60, -32
"""The range of binary exponents of scaled numbers."""

FIRST_POWER, POWER_STEP = -300, 8
"""The powers of ten to scale by."""


def float_digits(value: float) -> tuple[str, int]:
    """The digits of a finite `value` > 0, and the power of ten of the last one."""
    significand, exponent = _parts(value)
    above = _normal(2 * significand + 1, exponent - 1)
    closer_below = significand == 1 << 52 and exponent > -1074
    below = (4 * significand - 1, exponent - 2) if closer_below else (2 * significand - 1, exponent - 1)
    scale, scale_exponent, ten = _power(above[1])
    high = _product(above[0], scale) - 1
    low = _product(below[0] << (below[1] - above[1]), scale) + 1
    middle = _product(_normal(significand, exponent)[0], scale)
    digits, last = _generate(high, high - middle, high - low, -(above[1] + scale_exponent + 64))
    return digits, last - ten


def _parts(value: float) -> tuple[int, int]:
    """`value` as an integer of at most 53 bits and a power of two."""
    exponent = max(math.frexp(value)[1] - 53, -1074)
    return int(math.ldexp(value, -exponent) if exponent > -1074 else value / 5e-324), exponent


def _normal(significand: int, exponent: int) -> tuple[int, int]:
    shift = 64 - significand.bit_length()
    return significand << shift, exponent - shift


def _power(exponent: int) -> tuple[int, int, int]:
    """The power of ten that scales 64 bits times 2^`exponent` to the digit range: significand, exponent, and which
    power."""
    needed = LEAST_EXPONENT - exponent - 1
    least = int(needed * 78913 / (1 << 18)) + (needed > 0)
    ten = FIRST_POWER + (least - FIRST_POWER + POWER_STEP - 1) // POWER_STEP * POWER_STEP
    if ten >= 0:
        size = (10**ten).bit_length() - 64
        return _rounded(10**ten << max(-size, 0), 1 << max(size, 0)), size, ten
    size = -((10**-ten).bit_length() + 63)
    significand = _rounded(1 << -size, 10**-ten)
    return (significand, size, ten) if significand >> 63 else (_rounded(1 << (1 - size), 10**-ten), size - 1, ten)


def _rounded(dividend: int, divisor: int) -> int:
    return (2 * dividend + divisor) // (2 * divisor)


def _product(a: int, b: int) -> int:
    """The upper 64 bits, rounded."""
    return (a * b + (1 << 63)) >> 64


def _generate(high: int, distance: int, room: int, bits: int) -> tuple[str, int]:
    """Digits of a number within `room` below `high`, as near to `distance` below it as possible; `bits` are after
    the point."""
    integral, fraction = high >> bits, high & ((1 << bits) - 1)
    digits = str(integral)
    for left in range(len(digits) - 1, -1, -1):
        unit = 10**left
        rest = (integral % unit << bits) + fraction
        if rest <= room:
            return _nearest(digits[: len(digits) - left], distance, room, rest, unit << bits), left
    last = 0
    while True:
        fraction, room, distance, last = fraction * 10, room * 10, distance * 10, last - 1
        digits += str(fraction >> bits)
        fraction &= (1 << bits) - 1
        if fraction <= room:
            return _nearest(digits, distance, room, fraction, 1 << bits), last


def _nearest(digits: str, distance: int, room: int, rest: int, unit: int) -> str:
    """Decreases the last digit while that comes nearer and stays within the room."""
    down = 0
    while (
        rest < distance and room - rest >= unit and (rest + unit < distance or distance - rest > rest + unit - distance)
    ):
        rest, down = rest + unit, down + 1
    return digits[:-1] + str(int(digits[-1]) - down)
