"""The K/V cache: keys and values of the tokens computed so far, one pair of arrays a layer, and copies of its cells."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.errors import UsageError
from bankml.model.limits import MICRO_BATCH
from bankml.model.pages import PagedArray, copied, zeros
from bankml.model.shape import ModelConfig
from bankml.model.window_cells import EMPTY, WindowCells, window_cells


@dataclass(frozen=True)
class CacheType:
    """How the keys or values of one head and token are stored: blocks of `block_values` in `block_bytes`.

    The dtype of the arrays (uint16 for f16, uint8 for q8_0) tells the native attention which type it reads.
    """

    name: str
    dtype: type[np.uint16] | type[np.uint8]
    block_values: int
    block_bytes: int

    def row(self, head_size: int) -> int:
        """Elements of `dtype` for one head of `head_size` values. Raises UsageError unless those are whole blocks."""
        if head_size % self.block_values:
            raise UsageError(
                f"a {self.name} K/V cache needs heads of whole blocks of {self.block_values} values; "
                f"this model's have {head_size}"
            )
        return head_size // self.block_values * self.block_bytes // np.dtype(self.dtype).itemsize


_DTYPES: Mapping[int, type[np.uint16] | type[np.uint8]] = {1: np.uint8, 2: np.uint16}  # by their size in bytes

CACHE_TYPES: Mapping[str, CacheType] = {
    one.name: CacheType(one.name, _DTYPES[one.item_bytes], one.block_values, one.block_bytes)
    for one in _native.cache_formats()
}
F16 = CACHE_TYPES["f16"]


def cache_type_from(environment: Mapping[str, str] = os.environ) -> CacheType:
    """The type that BANKML_CACHE_TYPE names, f16 by default. Raises UsageError for an unsupported one."""
    name = environment.get("BANKML_CACHE_TYPE") or F16.name
    if name not in CACHE_TYPES:
        raise UsageError(f"BANKML_CACHE_TYPE must be {' or '.join(CACHE_TYPES)}, not {name!r}")
    return CACHE_TYPES[name]


class CacheRows(NamedTuple):
    """Where the rows of a micro-batch stand in one sequence and in its cells.

    `position` is the first row's. Without `places` (int32 [n], the cell of each row) a row's cell is its position; with
    them `positions` (int32 [cells looked at]) has the position of the token in each cell, -1 for an empty one.
    """

    position: int
    places: npt.NDArray[np.int32] | None = None
    positions: npt.NDArray[np.int32] | None = None


def everything_visible(n: int) -> CacheRows:
    """The rows of an input of `n` tokens each of which sees all: its cells are those of its rows, and nothing in them
    is later than any of them."""
    return CacheRows(0, np.arange(n, dtype=np.int32), np.zeros(n, np.int32))


class SpanCells(NamedTuple):
    """What one layer's attention needs of a span: its sequence's keys and values, and where the rows stand in them.

    A tuple, because one is made for every layer of every token."""

    k: npt.NDArray[Any]
    v: npt.NDArray[Any]
    rows: CacheRows


LayerCells = Sequence[SpanCells]
"""What one layer's attention needs of all spans, in the order of their rows."""


@dataclass(frozen=True)
class CacheSize:
    """Cells of a sequence: `cells`, and `window_cells` in layers with a sliding window."""

    cells: int
    window_cells: int

    @classmethod
    def of(cls, config: ModelConfig, cells: int, longest: int = MICRO_BATCH) -> "CacheSize":
        """`longest`: the tokens of the longest micro-batch."""
        window = config.window
        return cls(cells, 0 if window is None else window_cells(cells, window.size, max(longest, MICRO_BATCH)))


@dataclass(frozen=True)
class WindowState:
    """Keys and values that a sliding window still sees: [layer][kv_heads][token][row], with the tokens' positions."""

    positions: npt.NDArray[np.int32]
    k: npt.NDArray[Any]
    v: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return self.positions.nbytes + self.k.nbytes + self.v.nbytes


@dataclass(frozen=True)
class KVCells:
    """Keys and values of the first `cells` tokens: [layer][kv_heads][cells][row], in the cache's type.

    Of a model with a sliding window only those layers that see every position; `window` has the others' tokens.
    """

    k: npt.NDArray[Any]
    v: npt.NDArray[Any]
    window: WindowState | None = None

    @property
    def cells(self) -> int:
        return int(self.k.shape[2])

    @property
    def nbytes(self) -> int:
        return self.k.nbytes + self.v.nbytes + (0 if self.window is None else self.window.nbytes)

    def pieces(self) -> Iterator[memoryview]:
        """All bytes of k and then of v, each piece the cells of one head; writing to them writes the state."""
        for array in (self.k, self.v):
            for layer in array:
                for head in layer:
                    yield memoryview(head.reshape(-1).view(np.uint8))


def cache_bytes(config: ModelConfig, cells: int, kind: CacheType) -> int:
    """Bytes of a sequence's full cache; an encoder has none."""
    if config.encoder:
        return 0
    size = CacheSize.of(config, cells)
    in_layers = [size.window_cells if config.windowed(i) else size.cells for i in range(config.n_layer)]
    return 2 * sum(in_layers) * config.kv_heads * kind.row(config.head_size) * np.dtype(kind.dtype).itemsize


class KVCache:
    """Keys and values in `kind`, [layer][kv_heads][cells][row].

    The cell of a token is its position; layers with a sliding window have a shorter cache with cells by WindowCells.
    Raises UsageError where the model's heads are not whole blocks of the type.
    """

    def __init__(self, config: ModelConfig, cells: int, kind: CacheType = F16, longest: int = MICRO_BATCH) -> None:
        row = kind.row(config.head_size)
        windowed = [config.windowed(i) for i in range(config.n_layer)]
        size = CacheSize.of(config, cells, longest)
        self.cells = cells
        self.kind = kind
        self.window = 0 if config.window is None else config.window.size
        self._ring = None if config.window is None else WindowCells(size.window_cells, config.window.size)

        shape = (windowed.count(False), config.kv_heads, cells, row)
        self._paged = PagedArray(shape, kind.dtype), PagedArray(shape, kind.dtype)
        self._k, self._v = (one.array for one in self._paged)
        window_shape = (windowed.count(True), config.kv_heads, size.window_cells, row)
        self._window_k, self._window_v = zeros(window_shape, kind.dtype), zeros(window_shape, kind.dtype)
        full = iter(zip(self._k, self._v, strict=True))
        short = iter(zip(self._window_k, self._window_v, strict=True))
        self.layers = [next(short if one else full) for one in windowed]
        self._windowed = windowed

    @property
    def cache_type(self) -> str:
        """The name of its type."""
        return self.kind.name

    @property
    def nbytes(self) -> int:
        """Bytes of a full cache."""
        return self._k.nbytes + self._v.nbytes + self._window_k.nbytes + self._window_v.nbytes

    @property
    def cell_bytes(self) -> int:
        """Bytes of one token's keys and values in the layers that see every position."""
        return (self._k.nbytes + self._v.nbytes) // self.cells

    @property
    def window_first(self) -> int:
        """The lowest position whose keys and values the layers with a sliding window have; -1: none, or no window."""
        return EMPTY if self._ring is None else self._ring.first

    def window_in_order(self, n: int) -> bool:
        """Whether those layers have the cells of the first `n` tokens as if nothing else had been computed before."""
        return self._ring is None or self._ring.in_order(n)

    def place(self, position: int, n: int) -> list[SpanCells]:
        """The cells of each layer for `n` rows at `position` on; what was there and behind is dropped."""
        rows = window_rows = CacheRows(position)
        if self._ring is not None:
            window_rows = CacheRows(position, *self._ring.place(position, n))
        return [
            SpanCells(k, v, window_rows if windowed else rows)
            for (k, v), windowed in zip(self.layers, self._windowed, strict=True)
        ]

    def view(self, n: int) -> KVCells:
        """The first `n` cells: a view, not a copy, and without a sliding window's."""
        if not 0 <= n <= self.cells:
            raise ValueError(f"n={n} exceeds the cache's {self.cells} cells")
        return KVCells(self._k[:, :, :n], self._v[:, :, :n])

    def save(self, n: int) -> KVCells:
        """A copy of the first `n` cells; a sliding window's later tokens are dropped."""
        seen = self.view(n)
        self.truncate_window(n)
        return KVCells(copied(seen.k), copied(seen.v), self.save_window())

    def load(self, state: KVCells, n: int) -> None:
        """Copies the first `n` cells of `state` into the cache; later cells keep their contents.

        A sliding window's tokens are all copied, in place of those that the cache had.
        """
        to = self.view(n)
        to.k[...] = state.k[:, :, :n]
        to.v[...] = state.v[:, :, :n]
        if state.window is not None:
            self.load_window(state.window)

    def release(self, n: int) -> None:
        """Returns the memory of all but the first `n` cells to the system; their contents are lost."""
        for one in self._paged:
            one.release(n)

    def copy_from(self, other: "KVCache", n: int) -> None:
        """Copies the first `n` cells of another sequence, and what its sliding windows still see."""
        seen = other.view(n)
        self.load(KVCells(seen.k, seen.v, other.save_window()), n)

    def truncate_window(self, n: int) -> None:
        """Drops what layers with a sliding window have beyond the first `n` positions."""
        if self._ring is not None:
            self._ring.truncate(n)

    def save_window(self) -> WindowState | None:
        """A copy of what the sliding windows still see; None: the model has none."""
        if self._ring is None:
            return None
        cells = self._ring.visible()
        return WindowState(self._ring.positions_of(cells), self._window_k[:, :, cells], self._window_v[:, :, cells])

    def load_window(self, state: WindowState) -> None:
        """Puts a copy back in place of all tokens of the layers with a sliding window."""
        if self._ring is not None:
            places = self._ring.restore(state.positions)
            self._window_k[:, :, places] = state.k
            self._window_v[:, :, places] = state.v
