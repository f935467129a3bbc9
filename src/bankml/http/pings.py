"""Comments in a silent stream of server-sent events, so that clients and proxies do not give up while a request waits
for the model or computes its prompt. The timer runs on the event loop: no thread that computes is needed for it."""

import asyncio
from collections.abc import Callable

PING = b": ping\n\n"
"""A comment of the event stream format; every reader of it ignores such a line."""


class Pings:
    """Calls `send` whenever `interval` seconds have passed without `postpone`. Used on the event loop alone.

    `postpone` only notes the time, because it is called for every token: the timer looks at it when it expires.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, interval: float, send: Callable[[], object]) -> None:
        self._loop = loop
        self._interval = interval
        self._send = send
        self._due = loop.time() + interval
        self._timer = loop.call_at(self._due, self._expired)

    def postpone(self) -> None:
        self._due = self._loop.time() + self._interval

    def stop(self) -> None:
        self._timer.cancel()

    def _expired(self) -> None:
        if self._loop.time() >= self._due:
            self._send()
            self.postpone()
        self._timer = self._loop.call_at(self._due, self._expired)
