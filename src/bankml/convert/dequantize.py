"""Blocks back to float32: the bits of ggml's own dequantizers (b11192, compiled without FMA)."""

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.gguf.block_types import BLOCK_TYPES, BlockType

READABLE = tuple(BLOCK_TYPES[one.id] for one in _native.weight_formats())


def dequantize(raw: bytes | bytearray | memoryview, type_: BlockType) -> npt.NDArray[np.float32]:
    """`raw`: whole blocks of a type of READABLE. Returns float32 [weights]. Raises ValueError for another type."""
    blocks = np.frombuffer(raw, np.uint8)
    weights = np.empty(len(blocks) // type_.size * type_.weights, np.float32)
    _native.dequantize(type_.id, blocks, weights)
    return weights
