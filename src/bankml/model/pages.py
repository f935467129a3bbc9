"""Large arrays on pages of their own (bankml.pages)."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from bankml.pages import private_pages

LARGE = 1 << 20
"""Bytes from which on an array gets its own pages."""


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of zeros. Pages that are never written to take no memory. Raises MemoryError."""
    kind = np.dtype(dtype)
    nbytes = math.prod(shape) * kind.itemsize
    if nbytes < LARGE:
        return np.zeros(shape, kind)
    return np.frombuffer(private_pages(nbytes), kind).reshape(shape)


def copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of `array` in C order."""
    copy = zeros(array.shape, array.dtype)
    copy[...] = array
    return copy
