"""The functions that libbankml calls. Only `attach` and Ctrl-C raise; `open_handle` returns a reason instead."""

import logging
import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bankml import __version__
from bankml.capi.loading import Loading, Quietly
from bankml.capi.log import Say, SinkHandler
from bankml.capi.reasons import ENDED, EXPECTED, Ending, reason_of, where
from bankml.errors import PREFIXES, EngineFailed, FileProblem
from bankml.model.limits import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from bankml.capi.handle import Handle
    from bankml.gguf.header import Header

GENERATING = ("bankml.capi.handle", "bankml.library.load")
"""The modules that generate; they import numpy and the native code."""

log = logging.getLogger("bankml.capi")


def attach(version: str, say: Say) -> None:
    """Sends this package's log to libbankml's sink. Raises FileProblem when `version` is not this package's."""
    if version != __version__:
        raise FileProblem(f"libbankml is {version}, but the package that is imported is bankml {__version__}")
    SinkHandler.install(say)


def open_handle(
    model_path: str, fork_path: str, n_ctx: int, variables: Sequence[str], ending: Ending, quietly: Quietly
) -> tuple["Handle | None", bytes]:
    """The handle and b"", or None and the reason: the line that `bankml serve` would end with. Both are logged.

    `n_ctx` 0 means DEFAULT_CONTEXT; `variables` are the BANKML_ variables of the host's environment: name, value,
    name, value …
    """
    try:
        environment = dict(zip(variables[::2], variables[1::2], strict=True))
        return _opened(model_path, fork_path, n_ctx or DEFAULT_CONTEXT, environment, ending, quietly), b""
    except KeyboardInterrupt:  # the host is a Python program: libbankml raises it there
        raise
    except BaseException as error:
        reason = reason_of(error)
        message = reason.removeprefix(f"{PREFIXES[1]}: ")  # the log has a level of its own
        log.error("%s", message if isinstance(error, EXPECTED) else f"{message}\n{where(error)}")
        return None, reason.encode("utf-8", "surrogateescape")


def _opened(
    model_path: str, fork_path: str, n_ctx: int, environment: dict[str, str], ending: Ending, quietly: Quietly
) -> "Handle":
    from bankml.gate.contents import memory_for
    from bankml.gate.verify import verify
    from bankml.library.supported import require_supported

    loading = Loading(quietly, GENERATING)

    def memory_and_modules(header: "Header") -> mmap.mmap:
        memory = memory_for(header)  # first: what is left of the address space is what numpy may find too small
        loading.begin(header)
        return memory

    def unless_ending(_: int) -> None:
        if ending():
            raise EngineFailed(ENDED)

    try:
        verified = verify(model_path, fork_path, unless_ending, require=require_supported, into=memory_and_modules)
    finally:
        loading.wait()
    tokenizer = loading.tokenizer()

    from bankml.capi.handle import Handle
    from bankml.library.load import LoadOptions, open_library

    library = open_library(verified, LoadOptions(n_ctx, environment=environment), tokenizer=tokenizer)
    log.info("verified: %s: guard %s, sha256 %s as pinned", verified.name, verified.verdict.kind, verified.sha256)
    return Handle(library, ending)
