"""The slot: the tokens whose keys and values are in the model's KV cache, from position 0 on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bankml.engine.checkpoints import WindowCheckpoints

Tokens = NDArray[np.int32]


def common_prefix(a: Sequence[int] | Tokens, b: Sequence[int] | Tokens) -> int:
    """Length of the common prefix of `a` and `b`."""
    shorter = min(len(a), len(b))
    different = np.asarray(a[:shorter], np.int32) != np.asarray(b[:shorter], np.int32)
    return int(different.argmax()) if different.any() else shorter


class Slot:
    """The tokens in the KV cache. Only tokens whose forward pass has finished are listed.

    The last token of an answer is sampled but never computed, so it is not here, and the next request computes it.
    """

    def __init__(self) -> None:
        self._tokens: list[int] = []

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def begin(self, prompt: Sequence[int], reuse: bool, windows: WindowCheckpoints | None = None) -> int:
        """Keeps the reusable prefix for `prompt` and drops the rest; returns the number of tokens kept.

        That is the longest common prefix, but one token less when it is the entire prompt: the last token has to be
        computed for its logits. Without `reuse` (`cache_prompt: false`) nothing is kept. Of a model with a sliding
        window it may be less, down to what one of `windows` has.
        """
        kept = common_prefix(self._tokens, list(prompt)) if reuse else 0
        if windows is not None:
            kept = windows.resume(kept, len(prompt))
        kept = min(kept, max(0, len(prompt) - 1))
        if windows is not None:
            windows.keep(kept)
        del self._tokens[kept:]
        return kept

    def extend(self, tokens: Sequence[int]) -> None:
        """Appends `tokens`, which have been computed at the following positions."""
        self._tokens.extend(tokens)

    def clear(self) -> None:
        """Drops all tokens: the cache is empty or no longer valid."""
        self._tokens.clear()
