"""What libbankml calls. Only `attach` raises, and Ctrl-C: a reason, or a code and a result, come back instead."""

import atexit
import logging
import mmap
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from bankml import __version__
from bankml.capi.log import Say, SinkHandler
from bankml.errors import PREFIXES, BankmlError, EngineFailed, FileProblem, one_line
from bankml.model.limits import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from bankml.capi.handle import Handle

Ending = Callable[[], bool]
"""libbankml's own: whether the host's Python is ending, so that no answer is to go on."""

Quietly = Callable[[Callable[[], object]], object]
"""libbankml's own: calls a function that loads numpy or begins a thread, so that the host does not notice."""

NUMPY_BYTES = 128 << 20
"""Of address space: more than numpy takes when it is loaded, and less than any model does after that."""

ENDED = "the program has ended its Python"

log = logging.getLogger("bankml.capi")


def attach(version: str, say: Say, leave: Callable[[], object]) -> None:
    """Joins this package's log to that of the library, of the given version, and has `leave` called, which waits for
    whoever is in it, before Python ends. Raises FileProblem for another version."""
    if version != __version__:
        raise FileProblem(f"libbankml is {version}, but the package that is imported is bankml {__version__}")
    if SinkHandler.install(say):
        atexit.register(leave)


def open_handle(
    model_path: str, fork_path: str, n_ctx: int, variables: Sequence[str], ending: Ending, quietly: Quietly
) -> tuple["Handle | None", bytes]:
    """The handle and b"", or None and the reason, a line in serve's words. Either has been logged.

    `n_ctx` 0 means DEFAULT_CONTEXT; `variables` are the BANKML_ variables of the host's environment, a name and its
    value in turn.
    """
    try:
        environment = dict(zip(variables[::2], variables[1::2], strict=True))
        return _opened(model_path, fork_path, n_ctx or DEFAULT_CONTEXT, environment, ending, quietly), b""
    except KeyboardInterrupt:  # of a Python program that called: libbankml has it raised there
        raise
    except BaseException as error:
        reason = reason_of(error)
        log.error("%s", reason.removeprefix(f"{PREFIXES[1]}: "))  # whose level says as much
        return None, reason.encode("utf-8", "surrogateescape")


def _opened(
    model_path: str, fork_path: str, n_ctx: int, environment: dict[str, str], ending: Ending, quietly: Quietly
) -> "Handle":
    from bankml.gate.verify import verify
    from bankml.library.played import require_played

    def unless_ending(_: int) -> None:
        if ending():
            raise EngineFailed(ENDED)

    with _loaded_meanwhile(quietly):
        verified = verify(model_path, fork_path, unless_ending, require=require_played)

    from bankml.capi.handle import Handle
    from bankml.library.load import open_library

    library = open_library(verified, n_ctx, environment=environment)
    log.info("verified: %s: guard %s, sha256 %s as pinned", verified.name, verified.verdict.kind, verified.sha256)
    return Handle(library, ending)


@contextmanager
def _loaded_meanwhile(quietly: Quietly) -> Iterator[None]:
    """Has a thread of its own import what answers for the `with` block, which hashes: hashing needs no interpreter.

    Where no thread is to be had, the calling one does so afterwards. Raises, after the block, what importing raises.
    """
    failures: list[Exception] = []

    def load() -> None:
        try:
            _load(quietly)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=load, name="bankml-import", daemon=True)
    try:
        quietly(thread.start)
    except RuntimeError:
        yield
        load()
    else:
        try:
            yield
        finally:
            thread.join()
    if failures:
        raise failures[0]


def _load(quietly: Quietly) -> None:
    if "numpy" not in sys.modules:
        _look_for_room()
        try:
            quietly(lambda: import_module("numpy"))
        except ImportError as error:
            raise EngineFailed(f"numpy cannot be imported: {_first_line(error)}") from error
    import_module("bankml.capi.handle")
    import_module("bankml.library.load")


def _look_for_room() -> None:
    """Raises MemoryError where numpy's OpenBLAS would not find its memory: it ends the process then."""
    try:
        mmap.mmap(-1, NUMPY_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        raise MemoryError from None


def _first_line(error: BaseException) -> str:
    """What it says was the first cause: numpy puts pages of advice before that."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def reason_of(error: BaseException) -> str:
    """The line that the command line would end with."""
    if isinstance(error, BankmlError):
        return f"{PREFIXES[error.exit_code]}: {one_line(error.message)}"
    if isinstance(error, MemoryError):
        return "error: out of memory"
    if isinstance(error, OSError):
        return f"error: {one_line(str(error))}"
    return f"error: a mistake in bankml itself: {one_line(repr(error))}\n{where(error)}"


def where(error: BaseException) -> str:
    """Where in the code it came from: no message, which may quote what a person wrote."""
    return "".join(traceback.format_tb(error.__traceback__))
