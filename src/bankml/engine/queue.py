"""Who may use the loaded model: requests enter in order of arrival, those for the same model together."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from bankml.errors import Busy, Cancelled

CANCEL_POLL_S = 0.05
"""Interval in seconds at which a waiting request checks whether it was cancelled."""


class Ticket:
    """A request's place in the queue. `key` None: it enters alone. `weight` is how much of the resource it uses."""

    def __init__(self, key: Hashable | None, weight: int) -> None:
        self.key = key
        self.weight = weight
        self.admitted = threading.Event()


class AdmissionQueue:
    """A queue before one resource. Requests of one key use it together, up to a total weight of `most`; one without a
    key uses it alone.

    Nobody overtakes: while the first in the queue has to wait, so do all behind it, so that neither many requests of
    one key nor those of several starve the others. `limit`: the most that wait (None: any number).
    """

    def __init__(self, most: int = 1, limit: int | None = None) -> None:
        self._most = most
        self._limit = limit
        self._guard = threading.Lock()
        self._line: deque[Ticket] = deque()
        self._inside: list[Ticket] = []

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._line)

    @property
    def inside(self) -> int:
        """The number of requests that use the resource."""
        return len(self._inside)

    @contextmanager
    def turn(self, cancelled: Callable[[], bool], key: Hashable | None = None, weight: int = 1) -> Iterator[None]:
        """Waits in the queue and uses the resource for the `with` block, alone or together with others of its key.

        Raises Cancelled if `cancelled()` is true first, Busy at once where `limit` requests wait already.
        """
        ticket = Ticket(key, min(weight, self._most))
        with self._guard:
            self._line.append(ticket)
            self._admit()
            if self._limit is not None and len(self._line) > self._limit:
                self._line.remove(ticket)
                raise Busy(f"the queue is full ({self._limit}): try again later")
        try:
            while not ticket.admitted.wait(CANCEL_POLL_S):
                if cancelled():
                    raise Cancelled
            yield
        finally:
            self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        with self._guard:
            (self._inside if ticket.admitted.is_set() else self._line).remove(ticket)
            self._admit()

    def _admit(self) -> None:
        while self._line and self._may_enter(self._line[0]):
            ticket = self._line.popleft()
            self._inside.append(ticket)
            ticket.admitted.set()

    def _may_enter(self, ticket: Ticket) -> bool:
        if not self._inside:
            return True
        shared = ticket.key is not None and all(one.key == ticket.key for one in self._inside)
        return shared and sum(one.weight for one in self._inside) + ticket.weight <= self._most
