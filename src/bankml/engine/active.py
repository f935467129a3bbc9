"""One answer on its way through the scheduler: its generator on one side, its consumer's queue on the other."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from bankml.engine.completion import Compute, Event, PromptProgress, Step
from bankml.engine.parts import Logits
from bankml.errors import Cancelled

OUTPUT_LIMIT = 64
"""Events that wait for a consumer at most, beyond which nothing more is computed for it."""

Work = Generator[Event, Logits | None, Any]
"""The events of an answer, or of a part of it, and what they lead to. Each Compute is answered with the logits, float32
[n_vocab], or None where none are needed; they may be overwritten once the next event is requested."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event: `value` is what the work returned, `error` what ended it instead."""

    value: Any = None
    error: BaseException | None = None


Output = SimpleQueue[tuple[int, "PromptProgress | Step | Ended"]]


class ActiveSequence:
    """Work that the scheduler computes for. Its events go to `output`, each with `tag`.

    `advance`, `fail` and `check` are called by the scheduler's thread, `abandon` by the consumer's.
    """

    def __init__(self, work: Work, cancelled: Callable[[], bool], output: Output, tag: int = 0) -> None:
        self._work = work
        self._cancelled = cancelled
        self._output = output
        self._tag = tag
        self._abandoned = False
        self._wanted: Compute | None = None
        self.ended = False

    def advance(self, logits: Logits | None = None) -> None:
        """Passes on what was computed, and every event up to the next Compute or the end."""
        try:
            event = self._work.send(logits) if self._wanted is not None else next(self._work)
            while not isinstance(event, Compute):
                self._output.put((self._tag, event))
                event = next(self._work)
            self._wanted = event
        except StopIteration as done:
            self._end(Ended(done.value))
        except BaseException as error:
            self._end(Ended(error=error))

    def fail(self, error: BaseException) -> None:
        """Ends the work with `error`, which its generator sees first."""
        try:
            self._work.throw(error)
        except BaseException as raised:
            error = raised
        self._end(Ended(error=error))

    def check(self) -> None:
        """Raises Cancelled once its consumer is gone or wants no more."""
        if self._abandoned or self._cancelled():
            raise Cancelled

    def _end(self, last: Ended) -> None:
        self._work.close()
        self._wanted = None
        self.ended = True
        self._output.put((self._tag, last))

    @property
    def wanted(self) -> Compute:
        """What is to be computed next."""
        assert self._wanted is not None
        return self._wanted

    @property
    def paused(self) -> bool:
        """The consumer is too far behind."""
        return self._output.qsize() >= OUTPUT_LIMIT

    def abandon(self) -> None:
        """The consumer wants no more events."""
        self._abandoned = True
