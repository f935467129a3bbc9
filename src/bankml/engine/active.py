"""One answer on its way through the scheduler: its generator on one side, the queue to its consumer on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue

from bankml.engine.completion import Compute, Events, PromptProgress, Step
from bankml.engine.parts import Logits
from bankml.errors import Cancelled
from bankml.model.span import Span

OUTPUT_LIMIT = 64
"""Events that wait for the consumer at most, beyond which nothing more is computed for it."""

Output = PromptProgress | Step | BaseException | None


class ActiveSequence:
    """A sequence that the scheduler computes for. `advance` and `fail` are called by the scheduler's thread, `received`
    and `abandon` by the consumer's."""

    def __init__(self, events: Events, cancelled: Callable[[], bool]) -> None:
        self._events = events
        self._cancelled = cancelled
        self._abandoned = False
        self._output: SimpleQueue[Output] = SimpleQueue()
        self._wanted: Compute | None = None
        self.ended = False

    # ---- the scheduler's side

    def advance(self, logits: Logits | None = None) -> None:
        """Passes on what was computed, and every event up to the next Compute or the end."""
        try:
            event = self._events.send(logits) if self._wanted is not None else next(self._events)
            while not isinstance(event, Compute):
                self._output.put(event)
                event = next(self._events)
            self._wanted = event
        except StopIteration:
            self._end(None)
        except BaseException as error:
            self._end(error)

    def fail(self, error: BaseException) -> None:
        """Ends the answer with `error`, which its generator may still see."""
        try:
            self._events.throw(error)
        except BaseException as raised:
            self._end(raised)
        else:
            self._end(error)

    def check(self) -> None:
        """Raises Cancelled once its consumer is gone or wants no more."""
        if self._abandoned or self._cancelled():
            raise Cancelled

    def _end(self, last: BaseException | None) -> None:
        self._events.close()
        self._wanted = None
        self.ended = True
        self._output.put(last)

    @property
    def span(self) -> Span:
        """What is to be computed next."""
        assert self._wanted is not None
        return self._wanted.span

    @property
    def logits(self) -> bool:
        """Whether the logits of the span's last token are needed."""
        assert self._wanted is not None
        return self._wanted.logits

    @property
    def paused(self) -> bool:
        """The consumer is too far behind."""
        return self._output.qsize() >= OUTPUT_LIMIT

    # ---- the consumer's side

    def received(self, resume: Callable[[], None]) -> Iterator[PromptProgress | Step]:
        """The events, as they come; raises the error that ended the answer. `resume` is called when a paused sequence
        may go on."""
        while True:
            paused = self.paused
            event = self._output.get()
            if paused:
                resume()
            if event is None:
                return
            if isinstance(event, BaseException):
                raise event
            yield event

    def abandon(self) -> None:
        """The consumer wants no more events."""
        self._abandoned = True

    def drain(self) -> None:
        """Waits for the end of an abandoned answer: from then on its slot is not touched any more."""
        while not self.ended or not self._output.empty():
            self._output.get()
