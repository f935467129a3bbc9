"""The slots of a loaded model: which one a request takes, by llama-server's rules. No two requests share one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from bankml.engine.completion import Job
from bankml.engine.kv_budget import KVBudget
from bankml.engine.prompt_cache import MIN_PROMPT_OVERLAP, PromptCache, fraction, save, swap_prefix
from bankml.engine.queue import CANCEL_POLL_S
from bankml.engine.slot import Slot, common_prefix
from bankml.errors import Cancelled


class Slots:
    """Slots that are free or in use. Safe to call from any thread.

    `kv_limit` bytes are the most that their keys and values take together (KVBudget); None: no limit.
    """

    def __init__(
        self, slots: Sequence[Slot], prompt_cache: PromptCache | None = None, kv_limit: int | None = None
    ) -> None:
        self._slots = tuple(slots)
        self._busy: set[int] = set()
        self._last_used = [-1] * len(self._slots)
        self._uses = 0
        self._changed = threading.Condition()
        self._cache_lock = threading.Lock()
        self.prompt_cache = prompt_cache
        self.budget = KVBudget(kv_limit)
        self._short: object | None = None
        """The request that comes next, because it waits for memory only."""

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, number: int) -> Slot:
        return self._slots[number]

    def busy(self, number: int) -> bool:
        """Whether slot `number` is in use."""
        return number in self._busy

    @property
    def kv_bytes(self) -> int:
        """Bytes that the keys and values of all slots count for (KVBudget)."""
        with self._changed:
            return self.budget.used(self._slots)

    @contextmanager
    def for_prompt(
        self, job: Job, n_ctx: int, cancelled: Callable[[], bool], copies: int = 0
    ) -> Iterator[Sequence[Slot]]:
        """The slot that `job` names, or the best free one, and `copies` others, in use for the `with` block; each has
        room for the prompt and the longest answer within `n_ctx` tokens.

        What it would lose goes to the prompt cache, and the cached prefix of the prompt is restored into it. The others
        keep what they have. Raises Cancelled if `cancelled()` turns true before there are enough slots and memory,
        RequestError where there can never be.
        """
        cells = job.most_cells(n_ctx)
        self.budget.check(self._slots, cells, 1 + copies)
        with self._taken(lambda: self._chosen(job.prompt, job.slot, copies), cancelled, cells) as slots:
            if self.prompt_cache is not None:
                with self._cache_lock:
                    swap_prefix(job.prompt, slots[0], self.prompt_cache, job.cache_prompt)
            self._give_back(slots, cells)
            yield slots

    @contextmanager
    def for_input(self, tokens: Sequence[int], cancelled: Callable[[], bool]) -> Iterator[Slot]:
        """The best free slot for an input to embed, in use for the `with` block; as in llama-server the prompt cache
        has no part in it. Raises Cancelled as `for_prompt` does."""
        with self._taken(lambda: self._chosen(tokens, None, 0), cancelled, len(tokens)) as slots:
            yield slots[0]

    @contextmanager
    def of_number(self, number: int, cancelled: Callable[[], bool]) -> Iterator[Slot]:
        """Slot `number` with the tokens it has, in use for the `with` block. Raises Cancelled as `for_prompt` does."""
        with self._taken(lambda: self._free(number), cancelled, len(self._slots[number])) as slots:
            yield slots[0]

    def ended(self, slot: Slot, copy: bool) -> None:
        """The answer in `slot` has ended, while others to its prompt may go on. A `copy` keeps nothing, as in
        llama-server: what they share is in the slot that the prompt was computed in."""
        if copy:
            slot.clear()
            if slot.windows is not None:
                slot.windows.replace(())
        with self._changed:
            self._use(slot)

    def close(self) -> None:
        """Drops every slot and its cells, and empties the prompt cache. None may be in use."""
        self._slots = ()
        if self.prompt_cache is not None:
            self.prompt_cache.clear()

    @contextmanager
    def _taken(
        self, choose: Callable[[], Sequence[Slot]], cancelled: Callable[[], bool], cells: int = 0
    ) -> Iterator[Sequence[Slot]]:
        me = object()
        with self._changed:
            try:
                while not (slots := self._with_memory(choose(), cells, me)):
                    if cancelled():
                        raise Cancelled
                    self._changed.wait(CANCEL_POLL_S)
            finally:
                if self._short is me:
                    self._short = None
                    self._changed.notify_all()
            self._busy |= {slot.number for slot in slots}
            taken_at = self._uses
        try:
            yield slots
        finally:
            with self._changed:
                self.budget.end(slots)
                for slot in slots:
                    self._busy.discard(slot.number)
                    if self._last_used[slot.number] <= taken_at:
                        self._use(slot)
                self._changed.notify_all()

    def _use(self, slot: Slot) -> None:
        self._uses += 1
        self._last_used[slot.number] = self._uses

    def _with_memory(self, chosen: Sequence[Slot], cells: int, request: object) -> Sequence[Slot]:
        """`chosen` once there are `cells` for each; () before. Who waits for memory only is the next to get some."""
        if not chosen or self._short not in (None, request):
            return ()
        idle = [slot for slot in self._slots if slot.number not in self._busy]
        idle.sort(key=lambda slot: self._last_used[slot.number])
        if self.budget.reserve(chosen, self._slots, idle, cells, self._drop):
            return chosen
        self._short = request
        return ()

    def _drop(self, slot: Slot) -> None:
        """Empties an idle slot; the prompt cache keeps what it had."""
        if self.prompt_cache is not None:
            with self._cache_lock:
                save(slot, self.prompt_cache)
                self.prompt_cache.trim()
        slot.clear()
        slot.cells.release(0)

    def _give_back(self, slots: Sequence[Slot], cells: int) -> None:
        """Where memory is limited, what `slots` have beyond `cells` returns to the system."""
        if self.budget.limit is not None:
            for slot in slots:
                slot.cells.release(cells)

    def _free(self, number: int) -> Sequence[Slot]:
        return () if number in self._busy else (self._slots[number],)

    def _chosen(self, prompt: Sequence[int], number: int | None, copies: int) -> Sequence[Slot]:
        """The slot for the prompt and those for its copies, which are the first that are free; () for too few."""
        first = self._best(prompt) if number is None else next(iter(self._free(number)), None)
        others = [slot for slot in self._slots if slot is not first and slot.number not in self._busy]
        return () if first is None or len(others) < copies else (first, *others[:copies])

    def _best(self, prompt: Sequence[int]) -> Slot | None:
        """The free slot whose tokens share the largest fraction of `prompt`, if that is more than a tenth; else the
        least recently used one, of several that were never used the last."""
        new = np.asarray(list(prompt), np.int32)
        best, best_found = None, np.float32(MIN_PROMPT_OVERLAP)
        for slot in self._slots:
            if slot.number in self._busy or not len(slot):
                continue
            found = fraction(common_prefix(np.asarray(slot.tokens, np.int32), new), len(new))
            if found > best_found:
                best, best_found = slot, found
        if best is not None:
            return best
        free = [slot for slot in reversed(self._slots) if slot.number not in self._busy]
        return min(free, key=lambda slot: self._last_used[slot.number], default=None)
