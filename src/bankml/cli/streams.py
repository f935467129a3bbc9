"""The three standard streams, any of which whoever started us may have closed (`>&-`)."""

import fcntl
import io
import os
import sys


def open_closed_streams() -> None:
    """Gives every standard stream that is closed a file, and its descriptor with it.

    A model or a connection would get that number otherwise, and whatever a library writes to "stderr". The file is the
    null device, for stdin and stdout opened the wrong way round (as gnulib's stdopen does), so that reading or writing
    fails as it would have; stderr takes everything, since there is nobody to tell.
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
        # unbuffered, or what could not be written would fail once more at the interpreter's end
        file = os.fdopen(opened, mode, buffering=0)
        setattr(sys, name, io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", write_through=True))


def _is_closed(number: int) -> bool:
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError:
        return True
    return False
