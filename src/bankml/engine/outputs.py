"""The consumer's side of the scheduler: the events of one answer, or of several that one request asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from types import TracebackType

from bankml.engine.active import OUTPUT_LIMIT, ActiveSequence, Ended, Output, Work
from bankml.engine.completion import PromptProgress, Step
from bankml.engine.scheduler import Scheduler


class Outputs:
    """Starts work in the scheduler and yields its events, each with the tag of its work.

    Leaving the `with` block cancels what still runs and waits for its end: from then on no slot is touched.
    """

    def __init__(self, scheduler: Scheduler, cancelled: Callable[[], bool]) -> None:
        self._scheduler = scheduler
        self._cancelled = cancelled
        self._output: Output = SimpleQueue()
        self._active: dict[int, ActiveSequence] = {}

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for sequence in self._active.values():
            sequence.abandon()
        if self._active:
            self._scheduler.notify()
        while any(not sequence.ended for sequence in self._active.values()):
            self._output.get()

    def begin(self, works: Mapping[int, Work]) -> None:
        """Starts all of `works` before the scheduler's next step. Raises Cancelled where the scheduler was closed,
        OutOfMemory where no thread can be started."""
        begun = {tag: ActiveSequence(work, self._cancelled, self._output, tag) for tag, work in works.items()}
        self._scheduler.submit(list(begun.values()))
        self._active |= begun

    def events(self) -> Iterator[tuple[int, PromptProgress | Step | Ended]]:
        """The events until all work has ended; more may be begun meanwhile. Raises the error that ended any of it."""
        while self._active:
            paused = self._output.qsize() >= OUTPUT_LIMIT
            tag, event = self._output.get()
            if paused:
                self._scheduler.notify()
            if isinstance(event, Ended):
                del self._active[tag]
                if event.error is not None:
                    raise event.error
            yield tag, event
