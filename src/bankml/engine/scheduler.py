"""The one thread that computes: continuous batching of all running answers, none of which depends on the others.

A step computes the next token of every answer that decodes, together, so that the weights are read once for all; each
row has the bits that it has alone, because its kernels are chosen by its own span. Prompts are computed one micro-batch
at a time, in turn; between the operations of a micro-batch the answers that decode go on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from bankml.engine.active import ActiveSequence
from bankml.engine.completion import Compute
from bankml.engine.parts import ForwardPass, Logits, Vectors
from bankml.errors import Cancelled, OutOfMemory
from bankml.threads import start_thread

IDLE_POLL_S = 0.02
"""Seconds between checks whether an answer was cancelled while nothing can be computed."""


class Scheduler:
    """Runs the answers of one model. Its thread starts with the first answer and ends with `close`."""

    def __init__(self, model: ForwardPass) -> None:
        self._model = model
        self._incoming: deque[ActiveSequence] = deque()
        self._running: list[ActiveSequence] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._decoded_at = 0.0
        self._decode_seconds = 0.0
        self.batch_sizes: dict[int, int] = {}
        """How many decode steps computed so many answers together."""

    @property
    def running(self) -> int:
        """The number of answers that are being computed."""
        return len(self._running) + len(self._incoming)

    def submit(self, sequences: Sequence[ActiveSequence]) -> None:
        """Starts `sequences`, all before the next step. Raises Cancelled once it is closed, OutOfMemory where no thread
        can be started."""
        with self._changed:
            if self._closed:
                raise Cancelled
            self._start()
            self._incoming.extend(sequences)
            self._changed.notify()

    def close(self) -> None:
        """Ends the thread; answers that still run are cancelled."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def notify(self) -> None:
        """A consumer has read, or wants no more."""
        with self._changed:
            self._changed.notify()

    def _start(self) -> None:
        if self._thread is not None:
            return
        try:
            self._thread = start_thread(self._loop, "bankml-scheduler")
        except RuntimeError:
            raise OutOfMemory from None

    # ---- the thread

    def _loop(self) -> None:
        while self._work_to_do():
            self._admit()
            self._decode()
            self._compute_prompt()
        self._admit()
        for sequence in self._running:
            sequence.fail(Cancelled())
        self._running.clear()

    def _work_to_do(self) -> bool:
        """Waits until there is something to compute, or an answer to cancel. False: the scheduler was closed."""
        with self._changed:
            while not (self._closed or self._incoming or any(not one.paused for one in self._running)):
                self._changed.wait(IDLE_POLL_S if self._running else None)
                if self._running:
                    break
            return not self._closed

    def _admit(self) -> None:
        """Starts the answers that came, ends those that were cancelled, forgets those that ended."""
        while self._incoming:
            sequence = self._incoming.popleft()
            self._running.append(sequence)
            sequence.advance()
        for sequence in self._running:
            self._check(sequence)
        self._forget_ended()

    def _check(self, sequence: ActiveSequence) -> None:
        if sequence.ended:
            return
        try:
            sequence.check()
        except Cancelled as cancelled:
            sequence.fail(cancelled)

    def _forget_ended(self) -> None:
        if any(one.ended for one in self._running):
            self._running = [one for one in self._running if not one.ended]

    def _decode(self) -> None:
        """The next token of every answer that decodes."""
        ready = [one for one in self._running if one.wanted.decodes and not one.paused]
        if not ready:
            return
        began = time.monotonic()
        try:
            logits = self._model.forward([one.wanted.span for one in ready], True)
        except BaseException as error:
            for sequence in ready:
                sequence.fail(error)
        else:
            assert logits is not None
            self._count(len(ready))
            for sequence, row in zip(ready, logits, strict=True):
                self._go_on(sequence, row)
        self._forget_ended()
        self._decoded_at = time.monotonic()
        self._decode_seconds = self._decoded_at - began

    def _go_on(self, sequence: ActiveSequence, row: Logits | None) -> None:
        sequence.advance(row)
        self._check(sequence)

    def _count(self, together: int) -> None:
        self.batch_sizes[together] = self.batch_sizes.get(together, 0) + 1

    def _compute_prompt(self) -> None:
        """One micro-batch of one prompt; the next call is for another prompt."""
        waiting = [one for one in self._running if not one.wanted.decodes and not one.paused]
        if not waiting:
            return
        sequence = waiting[0]
        self._running.remove(sequence)
        self._running.append(sequence)

        def checkpoint() -> None:
            sequence.check()
            if time.monotonic() - self._decoded_at >= self._decode_seconds:
                self._between_operations(sequence)

        try:
            logits = self._forward(sequence.wanted, checkpoint)
        except BaseException as error:
            sequence.fail(error)
        else:
            self._go_on(sequence, logits)
        self._forget_ended()

    def _forward(self, wanted: Compute, checkpoint: Callable[[], None]) -> Logits | Vectors | None:
        if wanted.embeds:
            return self._model.embed(wanted.span, checkpoint)
        if wanted.rows is None:
            logits = self._model.forward([wanted.span], wanted.logits, checkpoint)
            return None if logits is None else logits[0]
        self._model.score(wanted.span, wanted.rows, checkpoint)
        return None

    def _between_operations(self, prompt: ActiveSequence) -> None:
        """While a prompt is being computed: answers that come start, and those that decode go on."""
        while self._incoming:
            sequence = self._incoming.popleft()
            self._running.append(sequence)
            sequence.advance()
        for sequence in self._running:
            if sequence is not prompt:
                self._check(sequence)
        self._forget_ended()
        self._decode()
