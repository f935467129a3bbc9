"""Slots whose cached prefix is computed again, as the trace of the answer says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bankml.engine.checkpoints import PromptLayout, WindowCheckpoints
from bankml.engine.completion import Job
from bankml.engine.parts import Cells
from bankml.engine.slot import Slot
from bankml.engine.slots import Slots
from bankml.engine.trace import ComputedSpan, Trace, checked_trace
from bankml.model.span import Span
from bankml.receipt.replay_record import AnswerRecord
from bankml.replay.proposals import TextProposals
from bankml.replay.speculation import SpeculativePass

PLACEHOLDER = 0
"""The token in the place of one that a later request did not keep: no row before it depends on it."""


class TracedBatches(WindowCheckpoints):
    """Cuts a prompt as it was cut: which checkpoints there were decided it."""

    def __init__(self, cells: Cells, record: AnswerRecord) -> None:
        super().__init__(cells)
        self._record = record

    def resume(self, common: int, n_prompt: int) -> int:
        return min(common, self._record.cached_tokens)

    def batch_end(self, start: int, prompt: PromptLayout) -> int:
        spans = (ComputedSpan(*span) for span in self._record.trace or ())
        ends = (start + 1 if span.rows == 1 else span.end for span in spans if span.position <= start < span.end)
        return next(ends, prompt.n_tokens)

    def before_batch(self, start: int, end: int, prompt: PromptLayout) -> None:
        """No later request goes back to a checkpoint."""


class TracedSlots(Slots):
    """Slots for the answers that `records` are of, in order; `proposals` are theirs by number."""

    def __init__(
        self,
        slots: Sequence[Slot],
        model: SpeculativePass,
        records: Sequence[AnswerRecord],
        proposals: Callable[[int], TextProposals],
    ) -> None:
        super().__init__(slots)
        self._model = model
        self._records = records
        self._proposals = proposals
        self._next = 0

    @contextmanager
    def for_prompt(
        self, job: Job, n_ctx: int, cancelled: Callable[[], bool], copies: int = 0
    ) -> Iterator[Sequence[Slot]]:
        """The first slot with the cells that the prompt found in the cache, and `copies` others."""
        slots = [self[i] for i in range(1 + copies)]
        if job.cache_prompt:
            self._fill(slots[0], job.prompt, self._records[self._next])
        else:
            slots[0].clear()
            self._cut_as(slots[0], self._records[self._next])
        for i, slot in enumerate(slots):
            self._model.propose(slot.cells, len(job.prompt), self._proposals(self._next + i))
        yield slots
        if job.cache_prompt or self._records[self._next].cached_tokens == 0:
            self._next = min(self._next + 1 + copies, len(self._records) - 1)

    def ended(self, slot: Slot, copy: bool) -> None:
        """Every slot keeps what it has, for the difference to be found in it."""

    def _fill(self, slot: Slot, prompt: Sequence[int], record: AnswerRecord) -> None:
        slot.clear()
        cached = record.cached_tokens
        spans = Trace([ComputedSpan(*span) for span in record.trace or ()]).first(cached)
        checked_trace(spans, cached)
        for span in spans:
            kept = list(prompt[span.position : span.end])
            if span.rows == 1:
                self._model.known(slot.cells, kept, span.position)
            else:
                tokens = kept + [PLACEHOLDER] * (span.rows - span.kept)
                self._model.forward([Span(tokens, span.position, slot.cells)], False)
        slot.fill(prompt[:cached], spans, in_order=cached)
        self._cut_as(slot, record)

    def _cut_as(self, slot: Slot, record: AnswerRecord) -> None:
        if slot.windows is not None:
            slot.windows = TracedBatches(slot.cells, record)
