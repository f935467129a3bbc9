"""Llama 3's scaling of positions, as the tensor `rope_freqs.weight` that llama.cpp's converter writes for it."""

import math

import numpy as np
import numpy.typing as npt

from bankml.convert.hugging_face.fields import JsonConfig

KIND = "llama3"
FIELDS = ("low_freq_factor", "high_freq_factor")


def llama3_factors(scaling: JsonConfig, base: float, head_size: int) -> npt.NDArray[np.float32]:
    """By what each pair of a head's values turns more slowly, float32 [head_size / 2]: high frequencies as they are,
    low ones by `factor`, those between by something between. Raises Refused for a field that is missing or invalid.

    The arithmetic is that of the converter, float32 in PyTorch's order: a number divided by a tensor is multiplied by
    its reciprocal. PyTorch's powers are not always the nearest ones. They are for the bases and heads of Llama 3; for
    others a factor may differ in its last bit.
    """
    factor = np.float32(scaling.number("factor"))
    low, high = (np.float32(scaling.number(field)) for field in FIELDS)
    original = scaling.count("original_max_position_embeddings")
    if not low < high:
        raise scaling.refuse("high_freq_factor", "is not larger than low_freq_factor")
    exponents = np.arange(0, head_size, 2, dtype=np.float32) / np.float32(head_size)
    powers = np.power(np.float64(base), exponents.astype(np.float64)).astype(np.float32)
    one = np.float32(1)
    lengths = one / (one / powers) * np.float32(2 * math.pi)
    smooth = (one / lengths * np.float32(original) - low) / (high - low)
    between = one / ((one - smooth) / factor + smooth)
    factors = np.where(lengths > np.float32(original / low), factor, between)
    return np.where(lengths < np.float32(original / high), one, factors).astype(np.float32)
