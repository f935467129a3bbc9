"""float32 to the types that convert writes, byte for byte as ggml b11192 writes them.

ggml's quantizers are compiled without FMA: every operation is rounded to float32, as numpy's are. Every function takes
float32 of shape [weights], a multiple of the block size, and returns the blocks as uint8. The bytes are ggml's for
finite weights; for Q1_0 and Q2_0 also for the others.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bankml.convert.halves import Bytes, Floats, Halves, to_f16
from bankml.convert.quantize_k import q4_k, q5_k, q6_k
from bankml.gguf.block_types import BF16, BLOCK_TYPES, F16, F32, Q1_0, Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, BlockType

Q4_K, Q5_K, Q6_K = (BLOCK_TYPES[number] for number in (12, 13, 14))
INT32_LIMIT = np.float32(2.0**31)


def quantize(weights: Floats, type_: BlockType) -> Bytes:
    """Returns uint8 of shape [bytes]. KeyError for a type that is not in `WRITERS`."""
    with np.errstate(all="ignore"):
        return WRITERS[type_](weights)


def _f32(weights: Floats) -> Bytes:
    return weights.astype("<f4", copy=False).view(np.uint8)


def _f16(weights: Floats) -> Bytes:
    return to_f16(weights).view(np.uint8)


def _bf16(weights: Floats) -> Bytes:
    """To nearest, ties to even; a NaN becomes quiet."""
    bits = weights.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + (bits >> 16 & 1))) >> 16
    return np.where(np.isnan(weights), bits >> 16 | 64, rounded).astype("<u2").view(np.uint8)


def _q4_0(weights: Floats) -> Bytes:
    scale, codes = _symmetric(weights, np.float32(8))
    return _packed(scale, _nibbles(codes))


def _q5_0(weights: Floats) -> Bytes:
    scale, codes = _symmetric(weights, np.float32(16))
    return _packed(scale, _fifth_bits(codes), _nibbles(codes))


def _q4_1(weights: Floats) -> Bytes:
    scale, minimum, codes = _with_minimum(weights, np.float32(15))
    return _packed(scale, minimum, _nibbles(codes))


def _q5_1(weights: Floats) -> Bytes:
    scale, minimum, codes = _with_minimum(weights, np.float32(31))
    return _packed(scale, minimum, _fifth_bits(codes), _nibbles(codes))


def _q8_0(weights: Floats) -> Bytes:
    """Scale: the largest |w| of 32 over 127. Code: w / scale rounded half away from zero."""
    blocks = weights.reshape(-1, Q8_0.weights)
    magnitudes = np.abs(blocks)
    scale = _at(magnitudes, magnitudes.argmax(axis=1)) / np.float32(127)
    codes = _to_integers(_half_away(blocks * _inverse(scale)[:, None]))
    return _packed(to_f16(scale), codes.astype(np.int8).view(np.uint8))


def _symmetric(weights: Floats, half: np.float32) -> tuple[Halves, Bytes]:
    """The f16 scale [blocks] and the codes [blocks, 32], 0 to 2 * half - 1; code `half` is the weight 0.

    The scale carries the first weight of the largest magnitude to code 0.
    """
    blocks = weights.reshape(-1, Q4_0.weights)
    extreme = _at(blocks, np.abs(blocks).argmax(axis=1))
    # A block of zeros has the scale -0, whatever the sign of its zeros.
    scale = -np.where(extreme != 0, extreme, np.float32(0)).astype(np.float32) / half
    codes = _to_integers(blocks * _inverse(scale)[:, None] + (half + np.float32(0.5)))
    return to_f16(scale), np.minimum(codes, int(2 * half - 1)).astype(np.uint8)


def _with_minimum(weights: Floats, steps: np.float32) -> tuple[Halves, Halves, Bytes]:
    """The f16 scale and minimum [blocks] and the codes [blocks, 32], 0 to `steps`: the minimum has code 0."""
    blocks = weights.reshape(-1, Q4_1.weights)
    # The first of equal weights, since 0 and -0 are equal: the signs of the minimum and of a zero scale are written.
    minimum, maximum = _at(blocks, blocks.argmin(axis=1)), _at(blocks, blocks.argmax(axis=1))
    scale = (maximum - minimum) / steps
    codes = _to_integers((blocks - minimum[:, None]) * _inverse(scale)[:, None] + np.float32(0.5))
    return to_f16(scale), to_f16(minimum), np.minimum(codes, int(steps)).astype(np.uint8)


def _at(blocks: Floats, columns: npt.NDArray[np.intp]) -> Floats:
    return np.take_along_axis(blocks, columns[:, None], axis=1)[:, 0]


def _inverse(scale: Floats) -> Floats:
    """1 / scale, which overflows to infinity for a scale of at most 2**-128; 0 for a scale of 0."""
    return np.where(scale != 0, np.float32(1) / scale, np.float32(0)).astype(np.float32)


def _half_away(values: Floats) -> Floats:
    """C's roundf: to the nearest integer, halves away from zero."""
    truncated = np.trunc(values)
    return truncated + np.copysign(np.abs(values - truncated) >= np.float32(0.5), values).astype(np.float32)


def _to_integers(values: Floats) -> npt.NDArray[np.int32]:
    """Toward zero. x86 converts infinity and NaN to the smallest int32, of which ggml keeps the low byte: 0."""
    return np.where(np.isfinite(values), values, np.float32(0)).astype(np.int32)


def _nibbles(codes: Bytes) -> Bytes:
    """The low four bits of 32 codes, [blocks, 16]: weight j low, weight j + 16 high."""
    low = codes & np.uint8(15)
    return low[:, :16] | low[:, 16:] << np.uint8(4)


def _fifth_bits(codes: Bytes) -> Bytes:
    """Bit 4 of 32 codes, [blocks, 4]: the first weight lowest."""
    return np.packbits(codes >> 4, axis=1, bitorder="little")


def _packed(*fields: Halves | Bytes) -> Bytes:
    """Blocks of these fields: uint16 [blocks], or uint8 [blocks, bytes]."""
    columns = [one[:, None].astype("<u2").view(np.uint8) if one.ndim == 1 else one for one in fields]
    return np.concatenate(columns, axis=1, dtype=np.uint8).reshape(-1)


def _q1_0(weights: Floats) -> Bytes:
    """Scale: the mean of |w| over 128, summed in float32 from first to last. Bit 1: w >= 0; first bit lowest."""
    blocks = weights.reshape(-1, Q1_0.weights)
    magnitudes = np.abs(blocks)
    total = np.zeros(len(blocks), np.float32)
    for column in range(Q1_0.weights):
        total += magnitudes[:, column]
    scale = to_f16(total / np.float32(Q1_0.weights))
    return _packed(scale, np.packbits(blocks >= 0, axis=1, bitorder="little"))


def _q2_0(weights: Floats) -> Bytes:
    """Scale: the largest |w| of 64. Code: w / scale rounded half away from zero, -1 to 2, plus one; first lowest."""
    blocks = weights.reshape(-1, Q2_0.weights)
    magnitudes = np.abs(blocks)
    largest = np.fmax.reduce(magnitudes, axis=1, initial=np.float32(0))
    inverse = np.where(largest > 0, np.float32(1) / largest, np.float32(0)).astype(np.float32)
    rounded = _half_away(blocks * inverse[:, None])
    # x86 converts values beyond int32 (also NaN and infinity) to the smallest int32, which the clamp makes code 0.
    in_range = np.abs(rounded) < INT32_LIMIT
    codes = np.where(in_range, np.clip(rounded, -1, 2) + 1, 0).astype(np.uint8).reshape(len(blocks), -1, 4)
    packed = (codes[..., 0] | codes[..., 1] << 2 | codes[..., 2] << 4 | codes[..., 3] << 6).astype(np.uint8, copy=False)
    return _packed(to_f16(largest), packed)


WRITERS: dict[BlockType, Callable[[Floats], Bytes]] = {
    F32: _f32,
    F16: _f16,
    BF16: _bf16,
    Q4_0: _q4_0,
    Q4_1: _q4_1,
    Q5_0: _q5_0,
    Q5_1: _q5_1,
    Q8_0: _q8_0,
    Q4_K: q4_k,
    Q5_K: q5_k,
    Q6_K: q6_k,
    Q1_0: _q1_0,
    Q2_0: _q2_0,
}
