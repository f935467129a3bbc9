"""The keys and values of the tokens seen so far, one pair of arrays a layer."""

import numpy as np
import numpy.typing as npt

from bankml.model.plan import Plan


class KVCache:
    """float16 bits as uint16, [layer][kv_heads][cells][head_size]; the cell of a token is its position."""

    def __init__(self, plan: Plan, cells: int) -> None:
        shape = (plan.n_layer, plan.kv_heads, cells, plan.head_size)
        # Zeroed pages are given by the kernel when a cell is first written, so an unused context costs nothing.
        self._k: npt.NDArray[np.uint16] = np.zeros(shape, np.uint16)
        self._v: npt.NDArray[np.uint16] = np.zeros(shape, np.uint16)
        self.layers = [(self._k[i], self._v[i]) for i in range(plan.n_layer)]
        self.cells = cells

    @property
    def nbytes(self) -> int:
        """Bytes of a full cache."""
        return self._k.nbytes + self._v.nbytes
