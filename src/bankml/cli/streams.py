"""The three standard streams, any of which may be closed at start (`>&-`)."""

import fcntl
import io
import os
import sys


def open_closed_streams() -> None:
    """Opens a file for every closed standard stream, so that its descriptor is taken.

    Otherwise a model or a connection would get that number, and whatever a library writes to "stderr". The file is the
    null device, for stdin and stdout opened in the wrong direction (as gnulib's stdopen does), so that reading or
    writing fails as before; stderr accepts everything, because errors about it could not be shown.
    """
    for number, name, mode, flags in (
        (0, "stdin", "rb", os.O_WRONLY),
        (1, "stdout", "wb", os.O_RDONLY),
        (2, "stderr", "wb", os.O_WRONLY),
    ):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, flags)
        if opened != number and _is_closed(number):
            os.dup2(opened, number)
            os.close(opened)
            opened = number
        os.set_inheritable(opened, opened == number)
        # unbuffered, or what could not be written would fail again at the interpreter's exit
        file = os.fdopen(opened, mode, buffering=0)
        setattr(sys, name, io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", write_through=True))


def _is_closed(number: int) -> bool:
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError:
        return True
    return False
