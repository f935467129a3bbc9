"""Checkpoints of a model with a sliding window, whose slot cannot go back to any earlier token.

Layers with a sliding window keep only its last positions. So that a prompt which shares an earlier part of the slot
need not be computed from its beginning, copies of those layers' keys and values are taken while prompts are computed.
When they are taken, where a prompt is cut for them and which one is used are llama-server's rules (server-context.cpp),
whose effect a client sees as `cache_n` and, where products depend on the rows of a batch, in the bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bankml.engine.parts import Cells

if TYPE_CHECKING:
    from bankml.model.kv_cache import WindowState

BATCH = 2048
"""Tokens that llama-server takes up at once, its default --batch-size."""

MICRO_BATCH = 512
TAIL = 4
"""A prompt is cut this many tokens before its end, and a micro-batch earlier."""

MOST = 32
"""Checkpoints of a slot, llama-server's default --ctx-checkpoints."""

LEAST_STEP = 8192
"""Tokens between two checkpoints, except near the end of a prompt and at the last user message."""


@dataclass(frozen=True)
class Checkpoint:
    """The windows after `n_tokens` tokens, which had the positions `first` to `last`; `request` took it."""

    n_tokens: int
    first: int
    last: int
    request: int
    state: WindowState


@dataclass(frozen=True)
class PromptLayout:
    """A prompt's length, and the positions at which a user message begins."""

    n_tokens: int
    user_starts: Sequence[int] = ()

    @property
    def last_user(self) -> int:
        return self.user_starts[-1] if self.user_starts else -1


class WindowCheckpoints:
    """The checkpoints of one slot, whose cells have layers with a sliding window."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._list: list[Checkpoint] = []
        self._request = 0

    @property
    def all(self) -> tuple[Checkpoint, ...]:
        return tuple(self._list)

    def replace(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Takes those of another conversation in their place."""
        self._list = list(checkpoints)

    def resume(self, common: int, n_prompt: int) -> int:
        """How many of the slot's tokens are kept for a prompt of which it has the first `common`; a checkpoint is put
        back where the windows no longer reach so far."""
        self._request += 1
        kept = next_position = common
        least = max(0, common - self._cells.window - (0 if common < n_prompt else 1))
        first = self._cells.window_first
        if common > 0 and (first < 0 or first >= least):
            found = self._latest(common, least)
            if found is None:
                kept = next_position = 0
            else:
                self._cells.load_window(found.state)
                next_position = min(common, max(found.first + 1, found.last))
                kept = min(next_position, found.n_tokens)
        # The second condition is not llama-server's: there a checkpoint of the first token alone outlives a prompt
        # that begins with another one, and a later request goes on from keys and values of the wrong token.
        self._list = [one for one in self._list if one.last <= next_position and one.n_tokens <= common]
        return kept

    def keep(self, n_tokens: int) -> None:
        """Drops what the windows have of later tokens."""
        self._cells.truncate_window(n_tokens)

    def _latest(self, common: int, least: int) -> Checkpoint | None:
        usable = (one for one in reversed(self._list) if one.last <= common and (one.first < least or one.first == 0))
        return next(usable, None)

    def batch_end(self, start: int, prompt: PromptLayout) -> int:
        """The end of the batch that begins after `start` tokens of the prompt."""
        end = min(prompt.n_tokens, start + BATCH)
        cuts = [prompt.n_tokens - offset for offset in (TAIL + MICRO_BATCH, TAIL)]
        cuts += [at for at in prompt.user_starts if at == prompt.last_user or self._far_from_last(at)]
        return min((at for at in cuts if start < at < end), default=end)

    def _far_from_last(self, n_tokens: int) -> bool:
        return not self._list or n_tokens > self._list[-1].n_tokens + LEAST_STEP

    def before_batch(self, start: int, end: int, prompt: PromptLayout) -> None:
        """Takes a checkpoint of the first `start` tokens where one is due before the batch that ends at `end`."""
        first = self._cells.window_first
        near_end = prompt.n_tokens < end + MICRO_BATCH
        if first < 0 or not (near_end or start in prompt.user_starts):
            return
        if near_end or start == prompt.last_user or self._far_from_last(start):
            self._make_room()
            self._list = [one for one in self._list if one.n_tokens != start]
            state = self._cells.save_window()
            assert state is not None  # the cells have a window
            self._list.append(Checkpoint(start, first, start - 1, self._request, state))

    def _make_room(self) -> None:
        """Drops checkpoints of earlier requests that are close to another, then the oldest, until one more fits."""
        kept: list[Checkpoint] = []
        for i, one in enumerate(self._list):
            full = len(kept) + len(self._list) - i + 1 >= MOST
            close = bool(kept) and one.n_tokens <= kept[-1].n_tokens + LEAST_STEP
            if not (full and close and one.request != self._request):
                kept.append(one)
        self._list = kept[max(0, len(kept) - MOST + 1) :]


def window_checkpoints(cells: Cells) -> WindowCheckpoints | None:
    """None for cells without a sliding window."""
    return WindowCheckpoints(cells) if cells.window else None
