"""The cells of a model without a K/V cache: there are none."""

from typing import Any

import numpy as np

from bankml.model.kv_cache import KVCells, WindowState
from bankml.model.window_cells import EMPTY


class NoCells:
    """What an encoder's sequences have in place of a KVCache."""

    cells = 0
    nbytes = 0
    cell_bytes = 0
    cache_type = "none"
    window = 0
    window_first = EMPTY

    def view(self, n: int) -> KVCells:
        """No cells. Raises ValueError for any other number."""
        if n:
            raise ValueError(f"n={n}, and there are no cells")
        nothing = np.zeros((0, 0, 0, 0), np.uint16)
        return KVCells(nothing, nothing)

    def save(self, n: int) -> KVCells:
        return self.view(n)

    def load(self, state: KVCells, n: int) -> None:
        self.view(n)

    def copy_from(self, other: Any, n: int) -> None:
        self.view(n)

    def window_in_order(self, n: int) -> bool:
        return True

    def truncate_window(self, n: int) -> None: ...

    def save_window(self) -> WindowState | None:
        return None

    def load_window(self, state: WindowState) -> None: ...

    def release(self, n: int) -> None: ...
