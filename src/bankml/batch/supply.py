"""The order of computation: requests that begin alike run near each other, so that their prefix is computed once.

The input is read a window at a time. Within a window requests are sorted by model and prompt. A window is opened when
the one before is handed out and the one before that is written, so that two windows of requests and of answers are in
memory at most, however long the input is and however slow one request.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bankml.batch.entry import bad_line
from bankml.batch.request import BadLine, BatchRequest, InputLine, read_line

WINDOW = 1024
"""Requests of a window."""

WINDOW_BYTES = 32 << 20
"""A window has no more requests once their bodies are so many bytes."""


@dataclass(frozen=True)
class Ready:
    """The output's line of the input's line `number`. `written`: the journal has it."""

    number: int
    line: bytes
    written: bool = False


class Supply:
    """Hands out the requests of `lines`, from any number of threads. `ahead` are the lines that the journal has, by
    their ids; `ready` gets those, and the lines that are no requests."""

    def __init__(
        self,
        lines: Iterator[InputLine],
        ahead: Mapping[str, bytes],
        ready: Callable[[Ready], None],
        window: int = WINDOW,
    ) -> None:
        self._lines = lines
        self._ahead = dict(ahead)
        self._ready = ready
        self._window = window
        self._changed = threading.Condition()
        self._queue: deque[BatchRequest] = deque()
        self._last_of: deque[int] = deque()
        """The number of the last line of each window that is not written."""
        self._out = 0
        self._ended = False
        self._error: BaseException | None = None

    def take(self) -> BatchRequest | None:
        """The next request to compute; waits while there is none yet. None: there are no more."""
        with self._changed:
            while True:
                if self._queue:
                    self._out += 1
                    return self._queue.popleft()
                if self._ended and self._out <= 0:
                    return None
                if self._ended or len(self._last_of) >= 2:
                    self._changed.wait()
                    continue
                self._open_window()

    def done(self) -> None:
        """A request that was taken has its answer."""
        with self._changed:
            self._out -= 1
            self._changed.notify_all()

    def give_back(self, request: BatchRequest) -> None:
        """A request that was taken has no answer: another worker gets it."""
        with self._changed:
            self._out -= 1
            self._queue.appendleft(request)
            self._changed.notify_all()

    def written(self, number: int) -> None:
        """The output has every line up to `number`."""
        with self._changed:
            while self._last_of and self._last_of[0] <= number:
                self._last_of.popleft()
                self._changed.notify_all()

    def stop(self) -> None:
        """Nothing more is handed out."""
        with self._changed:
            self._queue.clear()
            self._ended, self._out = True, 0
            self._changed.notify_all()

    @property
    def finished(self) -> bool:
        """Whether every request has its answer, or none is wanted any more."""
        with self._changed:
            return self._ended and not self._queue and self._out <= 0

    @property
    def error(self) -> BaseException | None:
        """What ended reading the input."""
        return self._error

    def _open_window(self) -> None:
        found: list[BatchRequest] = []
        last = size = 0
        try:
            while len(found) < self._window and size < WINDOW_BYTES:
                line = next(self._lines, None)
                if line is None:
                    self._ended = True
                    break
                last = line.number
                request = self._request(line)
                if request is not None:
                    found.append(request)
                    size += len(request.body)
        except BaseException as error:
            self._error, self._ended = error, True
        if last:
            self._last_of.append(last)
        self._queue.extend(sorted(found, key=lambda one: (one.order, one.number)))
        self._changed.notify_all()

    def _request(self, line: InputLine) -> BatchRequest | None:
        known = self._ahead.pop(line.id, None)
        if known is not None:
            self._ready(Ready(line.number, known, written=True))
            return None
        request = read_line(line)
        if isinstance(request, BadLine):
            self._ready(Ready(line.number, bad_line(request)))
            return None
        return request
