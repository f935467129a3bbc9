"""The command line. Exit codes: 0 play or done, 2 refuse, 3 the header needs more bytes, 1 usage or I/O, 130 Ctrl-C.

Only what every command needs is imported here: scripts run `bankml version` often, and people `--help`. Each command's
own module is imported when it runs (benchmarks/command_line.py).
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from bankml.cli.output import complain
from bankml.cli.streams import open_closed_streams
from bankml.errors import INTERNAL, BankmlError, final_line

INTERRUPTED = 130
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. An error is one line on stderr."""
    try:
        open_closed_streams()
        _spare_threads()
        with _terminable():
            return _run(argv)
    except BrokenPipeError:
        # The reader of stdout has closed it; keep the interpreter from reporting that when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except BankmlError as error:
        complain(final_line(error))
        return error.exit_code
    except KeyboardInterrupt as error:
        complain(final_line(error))
        return INTERRUPTED
    except (OSError, MemoryError, ImportError) as error:
        complain(final_line(error))
        return 1
    except Exception as error:
        if os.environ.get("BANKML_TRACEBACK"):
            raise
        line = final_line(error)
        complain(line + " (BANKML_TRACEBACK=1 shows where)" if line.startswith(INTERNAL) else line)
        return 1


def _spare_threads() -> None:
    """Keeps numpy's OpenBLAS from starting a thread per core when it is loaded; nothing here computes with it.

    OpenBLAS reads the process's own environment; `os.environ`, which a spawned llama-server gets, stays unchanged.
    """
    if BLAS_THREADS not in os.environ:
        os.putenv(BLAS_THREADS, "1")


def _run(argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    if words in (["version"], ["--version"]):
        from bankml.cli.version import version

        return version()

    from importlib import import_module

    from bankml.cli.parser import build_parser

    arguments = build_parser().parse_args(words)
    command = getattr(import_module(f"bankml.cli.{arguments.module}"), arguments.function)
    code: int = command(arguments)
    sys.stdout.flush()
    return code


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP run every open context manager's cleanup. `serve` installs its own handlers over these.

    A command started with nohup outlives the terminal: an ignored SIGHUP stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread can set signal handlers
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)
