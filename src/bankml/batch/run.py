"""Runs a batch: requests go to workers, answers into the output, in the input's order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

from bankml.batch.computation import Computation
from bankml.batch.digest import BatchDigest
from bankml.batch.entry import read_entry
from bankml.batch.output import BatchOutput
from bankml.batch.reading import lines_of
from bankml.batch.request import BatchRequest, InputLine
from bankml.batch.supply import WINDOW, Ready, Supply
from bankml.batch.worker import Lost, Paused, Worker, WorkerLost, WorkerPaused
from bankml.errors import Cancelled, EngineFailed, Refused
from bankml.threads import start_thread

Note = Callable[[str], None]
"""Prints one line about the run."""

Progress = Callable[[int], object]
"""Called with the number of lines that were written since the last call."""

Result = Ready | Lost | Paused | BaseException | None
"""What the threads tell the one that writes; None: one of them has ended."""


@dataclass
class Resumed:
    """What the output has: the digest of its lines, and of them the number. `rest` are the input's lines that follow;
    `moment` is what a template that shows the date saw as the present, 0 where none did."""

    digest: BatchDigest
    rest: Iterator[InputLine]
    moment: float = 0.0
    computations: set[Computation] = field(default_factory=set)

    @property
    def lines(self) -> int:
        return self.digest.size

    def require_same(self, computation: Computation) -> None:
        """Raises Refused where the lines that are there were computed with another file, or with other options that
        decide an answer."""
        for other in self.computations:
            if different := computation.difference(other):
                raise Refused(f"the output has answers that were computed with other options: {different}")


def resume(path: str, output: BatchOutput) -> Resumed:
    """Checks every line of the output against the input. Raises Refused, FileProblem."""
    lines = lines_of(path)
    resumed = Resumed(BatchDigest(), lines)
    for entry in output.entries(lines):
        resumed.digest.add(entry)
        resumed.moment = resumed.moment or entry.moment
        if entry.computation is not None:
            resumed.computations.add(entry.computation)
    return resumed


def unfinished(resumed: Resumed) -> bool:
    """Whether lines are missing; the first of them is still in `rest`."""
    first = next(resumed.rest, None)
    if first is not None:
        resumed.rest = itertools.chain([first], resumed.rest)
    return first is not None


class BatchRun:
    """One run over the lines that are missing; workers that are lost are left out, and `note` says so."""

    def __init__(
        self, resumed: Resumed, output: BatchOutput, workers: Sequence[Worker], note: Note, window: int = WINDOW
    ) -> None:
        self._digest = resumed.digest
        self._output = output
        self._workers = workers
        self._note = note
        self._results: SimpleQueue[Result] = SimpleQueue()
        self._stopped = threading.Event()
        self._lost: dict[Worker, Lost] = {}
        self._paused: set[str] = set()
        self._lock = threading.Lock()
        self._held: dict[int, bytes] = {}
        self._order: SimpleQueue[int] = SimpleQueue()
        self._supply = Supply(self._numbered(resumed.rest), output.ahead(), self._results.put, window)
        self._next: int | None = None

    def run(self, progress: Progress) -> None:
        """Computes and writes. Raises EngineFailed where every worker was lost, what a worker raises, OSError."""
        threads = [
            start_thread(lambda worker=worker: self._work(worker), f"bankml-batch-{worker.name}")
            for worker in self._workers
            for _ in range(worker.width)
        ]
        left = len(threads)
        try:
            while left or not self._results.empty():
                result = self._results.get()
                if result is None:
                    left -= 1
                elif isinstance(result, Ready):
                    progress(self._take(result))
                elif isinstance(result, Paused):
                    self._note_paused(result)
                elif isinstance(result, Lost):
                    self._note(f"dropped: {result.sentence}")
                else:
                    raise result
            self._check_end()
        finally:
            self._stopped.set()
            self._supply.stop()
            for worker in self._workers:
                worker.interrupt()
            for thread in threads:
                thread.join()

    def _note_paused(self, paused: Paused) -> None:
        """Each of a worker's threads says it; one line is enough."""
        if paused.name not in self._paused:
            self._paused.add(paused.name)
            self._note(f"waiting: {paused.name} {paused.reason}")

    # ---- the threads of workers

    def _work(self, worker: Worker) -> None:
        try:
            while worker not in self._lost:
                request = self._supply.take()
                if request is None or not self._answer(worker, request):
                    break
        except Cancelled:
            pass
        except BaseException as error:
            self._results.put(error)
        finally:
            self._results.put(None)

    def _answer(self, worker: Worker, request: BatchRequest) -> bool:
        try:
            line = worker.answer(request, self._stopped.is_set)
        except WorkerPaused as paused:
            self._supply.give_back(request)
            self._results.put(Paused(worker.name, paused.reason))
            return self._resume(worker)
        except WorkerLost as lost:
            self._supply.give_back(request)
            self._drop(worker, lost)
            return False
        except BaseException:
            self._supply.give_back(request)
            raise
        self._results.put(Ready(request.number, line))
        self._supply.done()
        return True

    def _resume(self, worker: Worker) -> bool:
        try:
            worker.resume(lambda: self._stopped.is_set() or self._supply.finished)
        except WorkerLost as lost:
            self._drop(worker, lost)
            return False
        return True

    def _drop(self, worker: Worker, lost: WorkerLost) -> None:
        with self._lock:
            if worker in self._lost:
                return
            self._lost[worker] = Lost(worker.name, lost.reason)
        self._results.put(self._lost[worker])
        if len(self._lost) == len(self._workers):
            self._supply.stop()

    # ---- the thread that writes

    def _numbered(self, lines: Iterator[InputLine]) -> Iterator[InputLine]:
        for line in lines:
            self._order.put(line.number)
            yield line

    def _take(self, ready: Ready) -> int:
        """Writes what is next, or keeps it until it is; the number of lines that were written."""
        self._held[ready.number] = ready.line
        written = 0
        while self._following() in self._held:
            number, self._next = self._following(), None
            assert number is not None  # it is in `_held`
            line = self._held.pop(number)
            self._output.write(line)
            self._digest.add(read_entry(line))
            self._supply.written(number)
            written += 1
        if not self._held:
            self._output.none_ahead()
        elif not ready.written and ready.number in self._held:
            self._output.keep(ready.line)
        return written

    def _following(self) -> int | None:
        """The number of the line that is written next; None where no further one has been read."""
        if self._next is None and not self._order.empty():
            self._next = self._order.get()
        return self._next

    def _check_end(self) -> None:
        if self._supply.error is not None:
            raise self._supply.error
        if len(self._lost) == len(self._workers):
            reasons = "; ".join(one.sentence for one in self._lost.values())
            raise EngineFailed(f"no worker is left: {reasons}; the same command continues where this one stopped")
