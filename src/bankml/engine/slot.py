"""A slot: the K/V cells of one sequence, and the tokens whose keys and values are in them, from position 0 on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bankml.engine.checkpoints import window_checkpoints
from bankml.engine.trace import ComputedSpan, Trace

if TYPE_CHECKING:
    from bankml.engine.parts import Cells

Tokens = NDArray[np.int32]


def common_prefix(a: Sequence[int] | Tokens, b: Sequence[int] | Tokens) -> int:
    """Length of the common prefix of `a` and `b`."""
    shorter = min(len(a), len(b))
    different = np.asarray(a[:shorter], np.int32) != np.asarray(b[:shorter], np.int32)
    return int(different.argmax()) if different.any() else shorter


class Slot:
    """The tokens in `cells`. Only tokens whose forward pass has finished are listed. `windows` are its checkpoints if
    the model has a sliding window. `trace` says how the cells were computed, which is all that decided their bits where
    `traced`: the places of cells in a sliding window's cache may depend on what was there before. The first
    `in_order` tokens were computed with all cells in the places that they have in an empty cache.

    The last token of an answer is sampled but never computed, so it is not here, and the next request computes it.
    """

    def __init__(self, cells: Cells, number: int = 0) -> None:
        self.cells = cells
        self.number = number
        self.windows = window_checkpoints(cells)
        self.trace = Trace()
        self.traced = True
        self.in_order = 0
        self._tokens: list[int] = []

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def begin(self, prompt: Sequence[int], reuse: bool) -> int:
        """Keeps the reusable prefix for `prompt` and drops the rest; returns the number of tokens kept.

        That is the longest common prefix, but one token less when it is the entire prompt: the last token has to be
        computed for its logits. Without `reuse` (`cache_prompt: false`) nothing is kept. Of a model with a sliding
        window it may be less, down to what a checkpoint has.
        """
        kept = common_prefix(self._tokens, list(prompt)) if reuse else 0
        if self.windows is not None:
            kept = self.windows.resume(kept, len(prompt))
        kept = min(kept, max(0, len(prompt) - 1))
        if self.windows is not None:
            self.windows.keep(kept)
        del self._tokens[kept:]
        self.trace.cut(kept)
        self.in_order = min(self.in_order, kept)
        self.traced = self.windows is None or (self.in_order == kept and self.cells.window_in_order(kept))
        return kept

    def extend(self, tokens: Sequence[int]) -> None:
        """Appends `tokens`, which have been computed at the following positions as one micro-batch."""
        ordered = self.in_order == len(self)
        self._tokens.extend(tokens)
        if tokens:
            self.trace.append(len(tokens))
        if ordered and (self.windows is None or self.cells.window_in_order(len(self))):
            self.in_order = len(self)

    def fill(self, tokens: Sequence[int], spans: Sequence[ComputedSpan], in_order: int = 0) -> None:
        """Takes `tokens` in place of its own; their cells are in place, and were computed as `spans` say, the first
        `in_order` of them in order."""
        self._tokens[:] = tokens
        self.trace = Trace(spans)
        self.in_order = in_order

    def copy_from(self, other: Slot) -> None:
        """Copies the cells and tokens of `other`."""
        self.clear()
        self.cells.copy_from(other.cells, len(other))
        self.fill(other.tokens, other.trace.spans, other.in_order)
        self.traced = other.traced
        if self.windows is not None and other.windows is not None:
            self.windows.replace(other.windows.all)

    def clear(self) -> None:
        """Drops all tokens: the cells are empty or no longer valid."""
        self._tokens.clear()
        self.trace = Trace()
        self.in_order = 0
