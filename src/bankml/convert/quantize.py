"""float32 to f16, Q1_0 and Q2_0, byte for byte as ggml b11192 writes them.

Every function takes float32 of shape [weights], a multiple of the block size, and returns the blocks as uint8.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bankml.gguf.block_types import F16, F32, Q1_0, Q2_0, BlockType

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

F16_NAN = 0x7E00
INT32_LIMIT = np.float32(2.0**31)


def quantize(weights: Floats, type_: BlockType) -> Bytes:
    """Returns uint8 of shape [bytes]. KeyError for a type that is not in `WRITERS`."""
    with np.errstate(all="ignore"):
        return WRITERS[type_](weights)


def to_f16(values: Floats) -> npt.NDArray[np.uint16]:
    """f16 bits: to nearest, ties to even, out of range to infinity; any NaN is ggml's one quiet NaN with its sign."""
    with np.errstate(all="ignore"):
        bits = values.astype("<f2").view(np.uint16)
    return np.where(np.isnan(values), (bits & 0x8000) | F16_NAN, bits).astype(np.uint16)


def _f32(weights: Floats) -> Bytes:
    return weights.astype("<f4", copy=False).view(np.uint8)


def _f16(weights: Floats) -> Bytes:
    return to_f16(weights).view(np.uint8)


def _q1_0(weights: Floats) -> Bytes:
    """Scale: the mean of |w| over 128, summed in float32 from first to last. Bit 1: w >= 0; first bit lowest."""
    blocks = weights.reshape(-1, Q1_0.weights)
    magnitudes = np.abs(blocks)
    total = np.zeros(len(blocks), np.float32)
    for column in range(Q1_0.weights):
        total += magnitudes[:, column]
    scale = to_f16(total / np.float32(Q1_0.weights))
    bits = np.packbits(blocks >= 0, axis=1, bitorder="little")
    return np.concatenate([scale[:, None].view(np.uint8), bits], axis=1).reshape(-1)


def _q2_0(weights: Floats) -> Bytes:
    """Scale: the largest |w| of 64. Code: w / scale rounded half away from zero, -1 to 2, plus one; first lowest."""
    blocks = weights.reshape(-1, Q2_0.weights)
    magnitudes = np.abs(blocks)
    largest = np.fmax.reduce(magnitudes, axis=1, initial=np.float32(0))
    inverse = np.where(largest > 0, np.float32(1) / largest, np.float32(0)).astype(np.float32)
    scaled = blocks * inverse[:, None]
    truncated = np.trunc(scaled)
    rounded = truncated + np.copysign(np.abs(scaled - truncated) >= np.float32(0.5), scaled).astype(np.float32)
    # x86 converts values beyond int32 (also NaN and infinity) to the smallest int32, which the clamp makes code 0.
    in_range = np.abs(rounded) < INT32_LIMIT
    codes = np.where(in_range, np.clip(rounded, -1, 2) + 1, 0).astype(np.uint8).reshape(len(blocks), -1, 4)
    packed = codes[..., 0] | codes[..., 1] << 2 | codes[..., 2] << 4 | codes[..., 3] << 6
    return np.concatenate([to_f16(largest)[:, None].view(np.uint8), packed], axis=1).reshape(-1)


WRITERS: dict[BlockType, Callable[[Floats], Bytes]] = {F32: _f32, F16: _f16, Q1_0: _q1_0, Q2_0: _q2_0}
