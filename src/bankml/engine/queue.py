"""The queue for the one slot: first come, first served; a cancelled request leaves it."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bankml.errors import Cancelled

CANCEL_POLL_S = 0.05
"""Interval in seconds at which a waiting request checks whether it was cancelled."""


class FifoLock:
    """A lock that is granted in order of arrival."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._line: deque[threading.Event] = deque()

    @property
    def waiting(self) -> int:
        """The number of requests waiting for the lock."""
        return max(0, len(self._line) - 1)

    @property
    def busy(self) -> bool:
        """True while the lock is held."""
        return bool(self._line)

    @contextmanager
    def turn(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Waits for the lock and holds it for the `with` block. Raises Cancelled if `cancelled()` is true first."""
        ticket = threading.Event()
        with self._guard:
            self._line.append(ticket)
            if len(self._line) == 1:
                ticket.set()
        try:
            while not ticket.wait(CANCEL_POLL_S):
                if cancelled():
                    raise Cancelled
            yield
        finally:
            self._leave(ticket)

    def _leave(self, ticket: threading.Event) -> None:
        with self._guard:
            had_turn = self._line[0] is ticket
            self._line.remove(ticket)
            if had_turn and self._line:
                self._line[0].set()
