"""The middle of a streamed answer, from the engine's socket to the client's without a thread between them.

A worker thread asks, judges the beginning and writes the end. What lies between is many small events, and each would
wake the worker and then the loop; passed on by the loop itself, an event costs one wake-up less, about 0.05 ms. The
worker waits meanwhile.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol


class RelaySource(Protocol):
    """Where the bytes come from. It stays open until the relay is over."""

    def fileno(self) -> int: ...

    def pull(self) -> bytes:
        """Without waiting: what can be passed on now. May raise; that ends the relay and is raised in the worker."""

    def sent(self) -> None:
        """What was pulled is on its way, so there is time to look at it. May raise, as `pull`."""

    @property
    def complete(self) -> bool: ...


class Relay:
    """One source's way to the client. All but `wait` is called by the loop."""

    def __init__(self, source: RelaySource) -> None:
        self._source = source
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._fileno = source.fileno()
        self._watched: asyncio.AbstractEventLoop | None = None

    # ---- called by the worker

    def wait(self, seconds: float) -> bool:
        """Whether it is over; waits for that at most `seconds`. Raises what the source raised."""
        if not self._over.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    # ---- called by the loop

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def resume(self, loop: asyncio.AbstractEventLoop, readable: Callable[[], None]) -> None:
        """`readable` is called whenever there is something to `pull`."""
        if self._watched is None and not self.over:
            loop.add_reader(self._fileno, readable)
            self._watched = loop

    def pause(self) -> None:
        if self._watched is not None:
            self._watched.remove_reader(self._fileno)
            self._watched = None

    def pull(self) -> bytes:
        """What can be sent now; then call `sent`."""
        return self._guarded(self._source.pull) or b""

    def sent(self) -> None:
        """What was pulled has been sent. After the last of it, it is over."""
        if not self.over:
            self._guarded(self._source.sent)
        if self._source.complete:
            self.end()

    def _guarded(self, step: Callable[[], bytes | None]) -> bytes | None:
        try:
            return step()
        except Exception as error:
            self._error = error
            self.end()
            return None

    def end(self) -> None:
        """The source is left alone from here on."""
        self.pause()
        self._over.set()
