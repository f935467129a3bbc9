"""The queue before the one slot: first come, first served, and a client that leaves gives up its place."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bankml.errors import Cancelled

CANCEL_POLL_S = 0.05
"""How often a waiting request looks whether its client is still there, in seconds."""


class FifoLock:
    """A lock whose turns come in the order in which they were asked for."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._line: deque[threading.Event] = deque()

    @property
    def waiting(self) -> int:
        """How many stand in line behind the one whose turn it is."""
        return max(0, len(self._line) - 1)

    @property
    def busy(self) -> bool:
        """Whether it is anybody's turn."""
        return bool(self._line)

    @contextmanager
    def turn(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Waits for the turn and holds it for the `with` block. Raises Cancelled if `cancelled()` turns true before."""
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
