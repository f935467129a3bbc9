"""Sends the package's log to the sink that the host program has set."""

import logging
from collections.abc import Callable

Say = Callable[[int, bytes], object]
"""From libbankml: passes a level of bankml.h and a message in UTF-8 to the sink set with bankml_set_log."""

ERROR, WARN, INFO, DEBUG = range(4)
"""The levels of bankml.h."""


class SinkHandler(logging.Handler):
    """Passes every log record of the package to libbankml."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say

    @classmethod
    def install(cls, say: Say) -> None:
        """Installs one handler a process. DEBUG records are dropped unless the host has set the logger's level."""
        package = logging.getLogger("bankml")
        if any(isinstance(handler, cls) for handler in package.handlers):
            return
        package.addHandler(cls(say))
        if package.level == logging.NOTSET:
            package.setLevel(logging.INFO)

    def createLock(self) -> None:
        """No lock: bankml.h says the sink may be called on several threads at once."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._say(level(record.levelno), self.format(record).encode("utf-8", "replace"))
        except Exception:
            self.handleError(record)


def level(number: int) -> int:
    """The level of bankml.h for a level of `logging`."""
    for least, ours in ((logging.ERROR, ERROR), (logging.WARNING, WARN), (logging.INFO, INFO)):
        if number >= least:
            return ours
    return DEBUG
