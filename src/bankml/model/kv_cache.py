"""The keys and values of the tokens seen so far, one pair of arrays a layer, and copies of their first cells."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bankml.errors import UsageError
from bankml.model.config import ModelConfig
from bankml.model.pages import copied, zeros

Q8_0_VALUES, Q8_0_BYTES = 32, 34  # of one block: an f16 scale and 32 signed bytes


@dataclass(frozen=True)
class CacheType:
    """How one vector of a head stands in the cache: `row(head_size)` elements of `dtype`.

    The dtype tells the native attention which type it reads.
    """

    name: str
    dtype: type[np.uint16] | type[np.uint8]
    row: Callable[[int], int]


def _f16_row(head_size: int) -> int:
    return head_size


def _q8_0_row(head_size: int) -> int:
    if head_size % Q8_0_VALUES:
        raise UsageError(f"a q8_0 K/V cache needs heads of whole blocks of 32 values; this model's have {head_size}")
    return head_size // Q8_0_VALUES * Q8_0_BYTES


F16 = CacheType("f16", np.uint16, _f16_row)
Q8_0 = CacheType("q8_0", np.uint8, _q8_0_row)

CACHE_TYPES: Mapping[str, CacheType] = {one.name: one for one in (F16, Q8_0)}


def asked_type(environment: Mapping[str, str] = os.environ) -> CacheType:
    """What BANKML_CACHE_TYPE says: f16, the default, or q8_0. Raises UsageError for anything else."""
    name = environment.get("BANKML_CACHE_TYPE") or F16.name
    if name not in CACHE_TYPES:
        raise UsageError(f"BANKML_CACHE_TYPE must be {' or '.join(CACHE_TYPES)}, not {name!r}")
    return CACHE_TYPES[name]


@dataclass(frozen=True)
class KVCells:
    """Keys and values of the first `cells` tokens: [layer][kv_heads][cells][row], as they stand in a cache."""

    k: npt.NDArray[Any]
    v: npt.NDArray[Any]

    @property
    def cells(self) -> int:
        return int(self.k.shape[2])

    @property
    def nbytes(self) -> int:
        return self.k.nbytes + self.v.nbytes

    def pieces(self) -> Iterator[memoryview]:
        """All of its bytes, K's before V's, each piece the cells of one head; writing to them writes the state."""
        for array in (self.k, self.v):
            for layer in array:
                for head in layer:
                    yield memoryview(head.reshape(-1).view(np.uint8))


class KVCache:
    """Keys and values in `kind`, [layer][kv_heads][cells][row]; the cell of a token is its position.

    Raises UsageError for a type that the plan's heads cannot be kept in.
    """

    def __init__(self, plan: ModelConfig, cells: int, kind: CacheType = F16) -> None:
        shape = (plan.n_layer, plan.kv_heads, cells, kind.row(plan.head_size))
        self._k: npt.NDArray[Any] = zeros(shape, kind.dtype)
        self._v: npt.NDArray[Any] = zeros(shape, kind.dtype)
        self.layers = [(self._k[i], self._v[i]) for i in range(plan.n_layer)]
        self.cells = cells
        self.kind = kind

    @property
    def nbytes(self) -> int:
        """Bytes of a full cache."""
        return self._k.nbytes + self._v.nbytes

    @property
    def cell_bytes(self) -> int:
        """Bytes of one token's keys and values."""
        return self.nbytes // self.cells

    def view(self, n: int) -> KVCells:
        """The first `n` cells themselves, not a copy."""
        if not 0 <= n <= self.cells:
            raise ValueError(f"a cache of {self.cells} cells has no first {n}")
        return KVCells(self._k[:, :, :n], self._v[:, :, :n])

    def save(self, n: int) -> KVCells:
        """A copy of the first `n` cells."""
        seen = self.view(n)
        return KVCells(copied(seen.k), copied(seen.v))

    def load(self, state: KVCells, n: int | None = None) -> None:
        """Puts the first `n` cells of `state` back (all of them when None); the cells behind are as they were."""
        n = state.cells if n is None else n
        to = self.view(n)
        to.k[...] = state.k[:, :, :n]
        to.v[...] = state.v[:, :, :n]
