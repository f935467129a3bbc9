"""The arrays that quantizers work on, and float32 to f16 with ggml's bits."""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Halves = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float32]

F16_NAN = 0x7E00


def to_f16(values: Floats) -> Halves:
    """f16 bits: to nearest, ties to even, out of range to infinity; any NaN is ggml's one quiet NaN with its sign."""
    with np.errstate(all="ignore"):
        bits = values.astype("<f2").view(np.uint16)
    return np.where(np.isnan(values), (bits & 0x8000) | F16_NAN, bits).astype(np.uint16)
