"""Large arrays on pages of their own, which return to the system the moment the array is freed.

malloc keeps what threads have freed for the next allocation of the same thread: a model that one thread unloads and
another loads again would keep the memory of both.
"""

import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

LARGE = 1 << 20
"""Bytes from which on an array gets its own pages."""


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of zeros. Pages that are never written to take no memory."""
    kind = np.dtype(dtype)
    nbytes = math.prod(shape) * kind.itemsize
    if nbytes < LARGE:
        return np.zeros(shape, kind)
    try:
        memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"cannot allocate {nbytes} bytes of memory") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):  # fewer, larger pages where the kernel has them, as numpy's own arrays ask for
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, kind).reshape(shape)


def copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of `array` in C order."""
    copy = zeros(array.shape, array.dtype)
    copy[...] = array
    return copy
