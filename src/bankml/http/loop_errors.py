"""Logs what the event loop reports: defects, and connections that it cannot accept."""

import asyncio
import errno
import time
from typing import Any

from bankml.http.log import RequestLog

REPEAT_AFTER = 10.0
"""Seconds for which a report that is repeated is counted and not logged again."""

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


class LoopErrors:
    """The exception handler of an event loop. A report is logged once, then counted."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log
        self._last = ""
        self._logged_at = 0.0
        self._repeated = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        text, now = _text(context), time.monotonic()
        if text == self._last and now - self._logged_at < REPEAT_AFTER:
            self._repeated += 1
            return
        if self._repeated:
            self._log.say(f"{self._last} ({self._repeated} times more)")
        if text != self._last or not self._repeated:
            self._log.say(text)
        self._last, self._logged_at, self._repeated = text, now, 0


def _text(context: dict[str, Any]) -> str:
    """One line without content of a request: an exception's message may quote a user's text."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _NO_DESCRIPTOR:
        return "no connection can be accepted: too many open files (ulimit -n); the next attempt follows in a second"
    return f"the event loop reports: {type(error).__name__ if error is not None else context.get('message')}"
