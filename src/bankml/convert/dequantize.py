"""Blocks back to float32, each value the same 32 bits as ggml's own dequantizer gives (b11192, compiled without FMA).

Every function takes blocks as uint8 of shape [n, bytes a block] and returns float32 of shape [n, weights a block]. A
scale is an f16 at the start of its block; where a block has a minimum, an f16 follows it.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bankml.gguf.block_types import BF16, F16, F32, Q1_0, Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, BlockType

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def dequantize(raw: bytes | bytearray | memoryview, type_: BlockType) -> Floats:
    """`raw`: complete blocks of one type. Returns float32 of shape [weights]. KeyError for a type not in `READERS`."""
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, type_.size)
    with np.errstate(invalid="ignore", over="ignore"):
        return READERS[type_](blocks).reshape(-1)


def _half(blocks: Bytes, at: int) -> Floats:
    """The f16 at byte `at` of every block, as a column."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Bytes:
    """Low nibbles are the first half of a block, high nibbles the second."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _fifth_bits(blocks: Bytes, at: int) -> Bytes:
    """The fifth bit of each of 32 weights, from a little-endian u32, where it adds 16."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little") * np.uint8(16)


def _f32(blocks: Bytes) -> Floats:
    return blocks.view("<f4").astype(np.float32, copy=False)


def _f16(blocks: Bytes) -> Floats:
    return blocks.view("<f2").astype(np.float32)


def _bf16(blocks: Bytes) -> Floats:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(blocks: Bytes) -> Floats:
    return (_nibbles(blocks[:, 2:]).astype(np.float32) - 8) * _half(blocks, 0)


def _q4_1(blocks: Bytes) -> Floats:
    return _nibbles(blocks[:, 4:]).astype(np.float32) * _half(blocks, 0) + _half(blocks, 2)


def _q5_0(blocks: Bytes) -> Floats:
    codes = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)
    return (codes.astype(np.float32) - 16) * _half(blocks, 0)


def _q5_1(blocks: Bytes) -> Floats:
    codes = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return codes.astype(np.float32) * _half(blocks, 0) + _half(blocks, 2)


def _q8_0(blocks: Bytes) -> Floats:
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32) * _half(blocks, 0)


def _q1_0(blocks: Bytes) -> Floats:
    scale = _half(blocks, 0)
    return np.where(np.unpackbits(blocks[:, 2:], axis=1, bitorder="little") == 1, scale, -scale)


def _q2_0(blocks: Bytes) -> Floats:
    codes = (blocks[:, 2:, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    return (codes.reshape(len(blocks), -1).astype(np.float32) - 1) * _half(blocks, 0)


READERS: dict[BlockType, Callable[[Bytes], Floats]] = {
    F32: _f32,
    F16: _f16,
    BF16: _bf16,
    Q4_0: _q4_0,
    Q4_1: _q4_1,
    Q5_0: _q5_0,
    Q5_1: _q5_1,
    Q8_0: _q8_0,
    Q1_0: _q1_0,
    Q2_0: _q2_0,
}
