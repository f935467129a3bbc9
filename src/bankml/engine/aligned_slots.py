"""Slots for answers that are those of an empty cache, though a prefix that several prompts share is computed once.

The bits of a prompt's keys and values depend on the micro-batches that it was computed in (trace). A prompt that is
computed alone is cut every MICRO_BATCH tokens, so whole micro-batches of another prompt that begins with the same
tokens are the ones that it would compute itself: exactly those are reused, from any slot. A model with a sliding window
reuses none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bankml.engine.completion import MICRO_BATCH, Job
from bankml.engine.engine import Engine
from bankml.engine.slot import Slot, common_prefix
from bankml.engine.slots import Slots
from bankml.engine.trace import ComputedSpan


def whole_batches(common: int, n_prompt: int) -> int:
    """Of `common` first tokens of a prompt of `n_prompt`, those in whole micro-batches before its last token, which is
    always computed."""
    return min(common, n_prompt - 1) // MICRO_BATCH * MICRO_BATCH


def batch_spans(n: int) -> list[ComputedSpan]:
    """How the first `n` tokens, a multiple of MICRO_BATCH, are computed by a prompt alone."""
    return [ComputedSpan(at, MICRO_BATCH, MICRO_BATCH) for at in range(0, n, MICRO_BATCH)]


class AlignedSlot(Slot):
    """A slot that has only what its next prompt would compute in the same way: `AlignedSlots` sees to it."""

    def begin(self, prompt: Sequence[int], reuse: bool) -> int:
        """Keeps what the slot has of `prompt`, whatever the request says of the cache."""
        return super().begin(prompt, self.windows is None)

    def reusable(self, prompt: Sequence[int]) -> int:
        """How many of its tokens are those of `prompt`, and were computed as that computes them."""
        if self.windows is not None:
            return 0
        most, found = whole_batches(common_prefix(self.tokens, prompt), len(prompt)), 0
        for span in self.trace.spans:
            if not (span.rows == span.kept == MICRO_BATCH and span.end <= most):
                break
            found = span.end
        return found


class AlignedSlots(Slots):
    """Slots whose prompts find whole micro-batches in any slot, also in one that is in use.

    A slot in use only grows, so that the cells of the tokens that it lists may be copied. A prompt waits while a slot
    computes a micro-batch that it needs as well. `prompts` has those of the slots in use.
    """

    def __init__(self, slots: Sequence[AlignedSlot]) -> None:
        super().__init__(slots)
        self._aligned = tuple(slots)
        self._prompts: dict[int, Sequence[int]] = {}

    @contextmanager
    def for_prompt(
        self, job: Job, n_ctx: int, cancelled: Callable[[], bool], copies: int = 0
    ) -> Iterator[Sequence[Slot]]:
        """A slot with the reusable part of the prompt, and `copies` others; which one `job` names is ignored, and
        whether it uses the cache."""
        with self._taken(lambda: self._prepared(job.prompt, copies), cancelled) as slots:
            try:
                yield slots
            finally:
                with self._changed:
                    self._prompts.pop(slots[0].number, None)

    @contextmanager
    def for_input(self, tokens: Sequence[int], cancelled: Callable[[], bool]) -> Iterator[Slot]:
        """An empty slot for an input to embed. It is empty again afterwards: inputs have micro-batches of their own."""
        with super().for_input(tokens, cancelled) as slot:
            slot.clear()
            try:
                yield slot
            finally:
                slot.clear()

    def _prepared(self, prompt: Sequence[int], copies: int) -> Sequence[Slot]:
        """The slots, the first of which has what can be reused; () while there are too few, or while it is better to
        wait. Called under the lock."""
        free = [slot for slot in self._aligned if slot.number not in self._busy]
        if len(free) <= copies:
            return ()
        found = {slot.number: slot.reusable(prompt) for slot in self._aligned}
        donor = max(self._aligned, key=lambda slot: found[slot.number])
        best = found[donor.number]
        if any(self._will_have(number, prompt) > best for number in self._prompts):
            return ()
        oldest = sorted(free, key=lambda slot: self._last_used[slot.number])
        first = max(oldest, key=lambda slot: found[slot.number])
        if found[first.number] < best:
            first = oldest[0]
            first.cells.copy_from(donor.cells, best)
        first.clear()
        first.fill(prompt[:best], batch_spans(best), best)
        self._prompts[first.number] = prompt
        return (first, *[slot for slot in oldest if slot is not first][:copies])

    def _will_have(self, number: int, prompt: Sequence[int]) -> int:
        """How much of `prompt` the slot `number`, in use, has once its own prompt is computed."""
        if self._aligned[number].windows is not None:
            return 0
        other = self._prompts[number]
        return whole_batches(min(common_prefix(other, prompt), whole_batches_of(other)), len(prompt))


def whole_batches_of(prompt: Sequence[int]) -> int:
    """The tokens of `prompt` in whole micro-batches."""
    return len(prompt) // MICRO_BATCH * MICRO_BATCH


def reuse_whole_batches(engine: Engine) -> None:
    """Gives `engine`, which computes nothing yet, slots of this kind in place of its own, and no prompt cache."""
    engine.slots = AlignedSlots([AlignedSlot(engine.model.new_cells(), number) for number in range(len(engine.slots))])
