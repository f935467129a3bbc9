"""Reasons of failure as the C API reports them: what both its entry points and a handle need."""

import traceback
from collections.abc import Callable

from bankml.errors import BankmlError, final_line

Ending = Callable[[], bool]
"""From libbankml: whether the host's Python is ending, so that no response may continue."""

ENDED = "the program has ended its Python"

EXPECTED = (BankmlError, MemoryError, OSError, ImportError)
"""Errors that can happen without a defect in bankml."""


def reason_of(error: BaseException) -> str:
    """The reason for `error`: the line that the command line would end with."""
    return final_line(error)


def where(error: BaseException) -> str:
    """The traceback of `error` without its message, which may quote a user's text."""
    return "".join(traceback.format_tb(error.__traceback__))
