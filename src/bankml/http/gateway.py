"""The connections of a server: how many are open, and which gives way to a new one."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from bankml.errors import Busy
from bankml.http.api_keys import ApiKeys
from bankml.http.cors import AllowedOrigins
from bankml.http.exchange import Application, AtOnce
from bankml.http.limits import Limits
from bankml.http.log import RequestLog
from bankml.http.workers import Workers


class Client(Protocol):
    """One connection (protocol.ClientProtocol)."""

    @property
    def idle_since(self) -> float: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...


class Gateway:
    """What all connections of a server share: the application, the limits, and which connections are open."""

    def __init__(
        self,
        application: Application,
        limits: Limits,
        log: RequestLog,
        workers: Workers,
        refused: Callable[[int], object] = lambda status: None,
        at_once: AtOnce = lambda request: None,
        api_keys: ApiKeys | None = None,
        origins: AllowedOrigins | None = None,
    ) -> None:
        """`refused` is called, on the event loop, with the status of every request that breaks an HTTP rule; `at_once`
        is called there before the application is."""
        self.application = application
        self.limits = limits
        self.log = log
        self.workers = workers
        self.refused = refused
        self.at_once = at_once
        self.api_keys = api_keys
        self.origins = origins
        self.stopping = False
        self.admitted: set[Client] = set()
        self.excess: set[Client] = set()
        self.empty = asyncio.Event()
        self.empty.set()

    def admit(self, client: Client) -> Busy | None:
        """Counts a new connection. Returns the Busy to refuse it with where it is one too many."""
        self.empty.clear()
        if len(self.admitted) >= self.limits.connections:
            self._make_room()
        if len(self.admitted) < self.limits.connections:
            self.admitted.add(client)
            return None
        self.excess.add(client)
        return Busy(f"{self.limits.connections} connections are open, and there is no room for more: try again later")

    def _make_room(self) -> None:
        """Ends the connection that has been idle longest, if for long enough: it was kept open for a next request, and
        the new client has one."""
        until = time.monotonic() - self.limits.spare
        idle = [client for client in self.admitted if client.idle_since <= until]
        if idle:
            longest = min(idle, key=lambda client: client.idle_since)
            self.admitted.discard(longest)
            longest.stop()

    def forget(self, client: Client) -> None:
        self.admitted.discard(client)
        self.excess.discard(client)
        if not self.admitted and not self.excess:
            self.empty.set()

    def is_stopping(self) -> bool:
        return self.stopping
