"""A process that has a private key in its memory writes that memory nowhere."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def forbid_dumps() -> None:
    """No core file of this process, and no other process of the same user reads its memory (prctl(2)).

    A program that it starts is not affected. Systems other than Linux have no such call.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
