"""What libbankml calls. Only `attach` raises, and Ctrl-C: a reason, or a code and a result, come back instead."""

import logging
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bankml import __version__
from bankml.capi.loading import Loading, Quietly, first_line
from bankml.capi.log import Say, SinkHandler
from bankml.errors import PREFIXES, BankmlError, EngineFailed, FileProblem, one_line
from bankml.model.limits import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from bankml.capi.handle import Handle
    from bankml.gguf.header import Header

Ending = Callable[[], bool]
"""libbankml's own: whether the host's Python is ending, so that no answer is to go on."""

ENDED = "the program has ended its Python"

EXPECTED = (BankmlError, MemoryError, OSError, ImportError)
"""What can happen without a mistake in bankml."""

log = logging.getLogger("bankml.capi")


def attach(version: str, say: Say) -> None:
    """Joins this package's log to that of the library, of the given version. Raises FileProblem for another's."""
    if version != __version__:
        raise FileProblem(f"libbankml is {version}, but the package that is imported is bankml {__version__}")
    SinkHandler.install(say)


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
        told = reason.removeprefix(f"{PREFIXES[1]}: ")  # the level says as much
        log.error("%s", told if isinstance(error, EXPECTED) else f"{told}\n{where(error)}")
        return None, reason.encode("utf-8", "surrogateescape")


def _opened(
    model_path: str, fork_path: str, n_ctx: int, environment: dict[str, str], ending: Ending, quietly: Quietly
) -> "Handle":
    from bankml.gate.verify import verify
    from bankml.library.supported import require_supported

    loading = Loading(quietly)

    def judge(header: "Header") -> None:
        require_supported(header)
        loading.begin(header)

    def unless_ending(_: int) -> None:
        if ending():
            raise EngineFailed(ENDED)

    try:
        verified = verify(model_path, fork_path, unless_ending, require=judge)
    finally:
        loading.wait()
    tokenizer = loading.tokenizer()

    from bankml.capi.handle import Handle
    from bankml.library.load import open_library

    library = open_library(verified, n_ctx, environment=environment, tokenizer=tokenizer)
    log.info("verified: %s: guard %s, sha256 %s as pinned", verified.name, verified.verdict.kind, verified.sha256)
    return Handle(library, ending)


def reason_of(error: BaseException) -> str:
    """The line that the command line would end with."""
    if isinstance(error, BankmlError):
        return f"{PREFIXES[error.exit_code]}: {one_line(error.message)}"
    if isinstance(error, MemoryError):
        return "error: out of memory"
    if isinstance(error, OSError):
        return f"error: {one_line(str(error))}"
    if isinstance(error, ImportError):
        return f"error: a part of Python cannot be loaded: {one_line(first_line(error))}"
    return f"error: a mistake in bankml itself: {one_line(repr(error))}"


def where(error: BaseException) -> str:
    """Where in the code it came from: no message, which may quote what a person wrote."""
    return "".join(traceback.format_tb(error.__traceback__))
