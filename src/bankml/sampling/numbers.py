"""32-bit numbers: the types that llama.cpp's sampling parameters have."""

import math
import struct

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)


def float32(value: float) -> float:
    """`value` rounded to 32 bits. Raises OverflowError when the result is not finite."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    if not math.isfinite(rounded):
        raise OverflowError(value)
    return rounded
