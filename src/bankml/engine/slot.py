"""The slot: which tokens' keys and values the model's cache holds, from position 0 on."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]


def common_prefix(a: Sequence[int] | Tokens, b: Sequence[int] | Tokens) -> int:
    """How many tokens `a` and `b` have in common from their start."""
    shorter = min(len(a), len(b))
    different = np.asarray(a[:shorter], np.int32) != np.asarray(b[:shorter], np.int32)
    return int(different.argmax()) if different.any() else shorter


class Slot:
    """The tokens held by the K/V cache. Only what a forward pass has finished is ever in it.

    The last token of an answer is sampled but never computed, so it is not here, and the next turn computes it.
    """

    def __init__(self) -> None:
        self._tokens: list[int] = []

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def begin(self, prompt: Sequence[int], reuse: bool) -> int:
        """Keeps what can be kept for `prompt` and forgets the rest; returns how many tokens need no computing.

        Kept is the longest common prefix, but one token less when that is the whole prompt: the last token has to be
        computed for its logits. Without `reuse` (`cache_prompt: false`) nothing is kept.
        """
        kept = common_prefix(self._tokens, list(prompt)) if reuse else 0
        kept = min(kept, max(0, len(prompt) - 1))
        del self._tokens[kept:]
        return kept

    def extend(self, tokens: Sequence[int]) -> None:
        """`tokens` have been computed at the positions that follow."""
        self._tokens.extend(tokens)

    def clear(self) -> None:
        """The cache is empty or can no longer be trusted."""
        self._tokens.clear()
