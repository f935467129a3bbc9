"""One sample shared by all clients: the cost does not depend on their number."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

AGE = 1.0
"""Minimum seconds between the starts of two samples."""

T = TypeVar("T")


class SharedSample(Generic[T]):
    """Takes a sample when one is requested and the last one began more than `age` seconds ago.

    A caller that finds one being taken waits for it, so no call takes longer than one sample, and all that wait get
    the same. An error is shared as a sample is.
    """

    def __init__(self, take: Callable[[], T], age: float = AGE, clock: Callable[[], float] = time.monotonic) -> None:
        self._take = take
        self._age = age
        self._clock = clock
        self._guard = threading.Lock()
        self._latest: Future[T] | None = None
        self._began = 0.0

    def sample(self) -> T:
        """A sample that is at most `age` seconds and one sample's duration old. Raises what taking it raises."""
        with self._guard:
            latest, now = self._latest, self._clock()
            if latest is not None and (not latest.done() or now - self._began < self._age):
                mine = None
            else:
                latest = mine = self._latest = Future()
                self._began = now
        if mine is not None:
            try:
                mine.set_result(self._take())
            except BaseException as error:
                mine.set_exception(error)
        return latest.result()

    def latest(self) -> T | None:
        """The current sample, if there is one; None where `sample` would take one, wait or raise."""
        with self._guard:
            latest, age = self._latest, self._clock() - self._began
        if latest is None or not latest.done() or age >= self._age or latest.exception() is not None:
            return None
        return latest.result()
