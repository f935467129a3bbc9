"""Large arrays on pages of their own (bankml.pages)."""

import math
import mmap
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


class PagedArray:
    """An array of zeros [layers][heads][cells][row] whose pages take memory once they are written. Raises MemoryError.

    Its cells are filled from the first one on, in every layer and head. So the pages are small ones: of large pages the
    first cells alone would take all.
    """

    def __init__(self, shape: tuple[int, int, int, int], dtype: npt.DTypeLike) -> None:
        kind = np.dtype(dtype)
        nbytes = math.prod(shape) * kind.itemsize
        self._pages = private_pages(max(1, nbytes), large=False)
        self._cell = shape[3] * kind.itemsize
        self._head = shape[2] * self._cell
        self._nbytes = nbytes
        self.array: npt.NDArray[Any] = np.frombuffer(self._pages, kind, math.prod(shape)).reshape(shape)

    def release(self, n: int) -> None:
        """Returns the pages behind the first `n` cells of each head to the system; they are zeros again."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        for begin in range(0, self._nbytes, self._head or 1):
            first = -(-(begin + n * self._cell) // mmap.PAGESIZE) * mmap.PAGESIZE
            end = (begin + self._head) // mmap.PAGESIZE * mmap.PAGESIZE
            if first < end:
                self._pages.madvise(mmap.MADV_DONTNEED, first, end - first)
