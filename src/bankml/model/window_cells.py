"""Which cell of a shorter K/V cache the token at each position has, in layers with a sliding window.

Bits depend on the order of the cells, so the rules are llama.cpp's (find_slot, apply_ubatch, seq_rm and state_read of
llama-kv-cache.cpp), for the one sequence that a cache has here.
"""

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int32]

STEP = 256  # cells: llama.cpp's kernels go through whole steps
EMPTY = -1


def window_cells(cells: int, window: int, micro_batch: int) -> int:
    """Cells of the shorter cache beside one of `cells` cells, for windows of `window` positions."""
    return -(-min(cells, window + micro_batch) // STEP) * STEP


class WindowCells:
    """The positions in the cells, and where the next search for free cells begins."""

    def __init__(self, cells: int, window: int) -> None:
        self._window = window
        self._positions: Positions = np.full(cells, EMPTY, np.int32)
        self._head = 0

    @property
    def first(self) -> int:
        """The lowest position that has a cell; EMPTY: none has."""
        used = self._positions[self._positions != EMPTY]
        return int(used.min()) if used.size else EMPTY

    def in_order(self, n: int) -> bool:
        """Whether the first `n` tokens, and no others, have the first `n` cells: as if they had been computed into an
        empty cache."""
        used = self._positions != EMPTY
        first = self._positions[:n] == np.arange(min(n, len(self._positions)))
        return self._head == n <= len(used) and bool(first.all()) and not bool(used[n:].any())

    def place(self, position: int, n: int) -> tuple[Positions, Positions]:
        """Gives the tokens at `position` on a cell each, and drops those at `position` and later.

        Returns their cells, int32 [n], and the positions in the cells that the kernels go through.
        """
        self.truncate(position)
        places = self._fill(np.arange(position, position + n, dtype=np.int32))
        return places, self._looked_at()

    def truncate(self, position: int) -> None:
        """Drops the tokens at `position` and later."""
        dropped = np.flatnonzero(self._positions >= position)
        if dropped.size:
            self._positions[dropped] = EMPTY
            self._head = min(self._head, int(dropped[0]))

    def visible(self) -> Positions:
        """The cells of the tokens that the last one sees, in the order of the cells."""
        last = int(self._positions.max(initial=EMPTY))
        return np.flatnonzero((self._positions != EMPTY) & (self._positions > last - self._window)).astype(np.int32)

    def positions_of(self, cells: Positions) -> Positions:
        return self._positions[cells].copy()

    def restore(self, positions: Positions) -> Positions:
        """Drops every token, then gives those at `positions` a cell each, which it returns."""
        self.truncate(0)
        return self._fill(positions) if positions.size else positions

    def _fill(self, positions: Positions) -> Positions:
        places = self._free(len(positions))
        replaced = self._positions[places]
        purged = int(replaced.max())
        self._positions[places] = positions
        if purged != EMPTY:  # what is older than an overwritten token goes too
            older = np.flatnonzero((self._positions != EMPTY) & (self._positions <= purged))
            self._positions[older] = EMPTY
            if older.size:
                self._head = min(self._head, int(older[0]))
        self._head = int(places[-1]) + 1
        return places

    def _free(self, n: int) -> Positions:
        """The next n cells that are empty or whose tokens no further token sees."""
        used = int(np.count_nonzero(self._positions != EMPTY))
        head = 0 if self._head > used + 2 * n else self._head
        after_last = int(self._positions.max(initial=EMPTY)) + 1
        free = (self._positions == EMPTY) | (after_last - self._positions >= self._window)
        cells = np.flatnonzero(free)
        in_order = np.concatenate([cells[cells >= head], cells[cells < head]])
        if len(in_order) < n:
            raise ValueError(f"{n} tokens do not fit into {len(in_order)} free cells")
        return in_order[:n].astype(np.int32)

    def _looked_at(self) -> Positions:
        last = int(np.flatnonzero(self._positions != EMPTY)[-1])
        seen = min(len(self._positions), (last // STEP + 1) * STEP)
        return self._positions[:seen].copy()
