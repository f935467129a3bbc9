"""The package's log, sent to where the host program wants it."""

import logging
from collections.abc import Callable

Say = Callable[[int, bytes], object]
"""libbankml's own: a level of bankml.h and a message in UTF-8, to the sink that bankml_set_log chose."""

ERROR, WARN, INFO, DEBUG = range(4)
"""The levels of bankml.h."""


class SinkHandler(logging.Handler):
    """Hands every record of the package to libbankml."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say

    @classmethod
    def install(cls, say: Say) -> None:
        """Once for a process; what has been installed stays. DEBUG stays out unless the host has let it in."""
        package = logging.getLogger("bankml")
        if any(isinstance(handler, cls) for handler in package.handlers):
            return
        package.addHandler(cls(say))
        if package.level == logging.NOTSET:
            package.setLevel(logging.INFO)

    def createLock(self) -> None:
        """None: the sink's own rules are those of bankml.h, and it may be called on several threads at once."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._say(level(record.levelno), self.format(record).encode("utf-8", "replace"))
        except Exception:
            self.handleError(record)


def level(number: int) -> int:
    """The level of bankml.h for one of `logging`."""
    for least, ours in ((logging.ERROR, ERROR), (logging.WARNING, WARN), (logging.INFO, INFO)):
        if number >= least:
            return ours
    return DEBUG
