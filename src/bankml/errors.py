"""All errors of bankML, with their HTTP status and exit code.

    BankmlError                 exit 1   500  server_error               the root
    ├── UsageError              exit 1                                   the command line was wrong
    ├── FileProblem             exit 1   500  server_error               a file is missing, unreadable, unwritable
    ├── Refused                 exit 2   422  invalid_model_error        the guard, the pin or a manifest refuses it
    │   ├── UnsupportedModel    exit 2   501  not_supported_error        a valid model of a kind that is not supported
    │   ├── FileMissing         exit 2   404  not_found_error            it is pinned, but the file is not there
    │   ├── PinMismatch         exit 2   503  unavailable_error          the file is not the one that was pinned
    │   └── ModelChanged        exit 2   503  unavailable_error          the file is not the one that was verified
    ├── Truncated               exit 3   422  invalid_model_error        the header needs more bytes than there are
    ├── InputTooLarge           exit 1   500  server_error               an input to embed exceeds a micro-batch
    ├── OutOfMemory             exit 1   503  unavailable_error          the system has no memory for a request
    ├── EngineFailed            exit 1   502  bad_gateway_error          llama-server ended, or its response is bad
    │   └── EngineTimeout       exit 1   504  gateway_timeout_error      llama-server sent nothing for too long
    └── RequestError                     400  invalid_request_error      the client's mistake
        ├── ContextExceeded              400  exceed_context_size_error  the prompt does not fit
        ├── Unauthorized                 401  authentication_error       no API key, or another
        ├── HostForbidden                403  permission_error           Host is not loopback
        ├── NotFound                     404  not_found_error            no such route or model
        ├── MethodNotAllowed             405  invalid_request_error
        ├── RequestTimeout               408  invalid_request_error      a head or a body was not received in time
        ├── BodyTooLarge                 413  invalid_request_error
        ├── WrongMediaType               415  invalid_request_error
        ├── NotSupported                 501  not_supported_error
        └── Busy                         503  unavailable_error          too many connections, or shutting down

A message is one sentence that names the field, the accepted range and the value received. `public_message` is the same
sentence for HTTP clients: where the message has a file's path, it has the file's name alone.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class BankmlError(Exception):
    exit_code = 1
    status = 500
    kind = "server_error"

    @property
    def message(self) -> str:
        return str(self)

    @property
    def public_message(self) -> str:
        """The message with file-system paths reduced to file names: what a client may read."""
        return self.message


class UsageError(BankmlError):
    pass


class FileProblem(BankmlError):
    """A problem with the file at `path`, as spelled in the message; empty where the message has no path."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self._path = path

    @property
    def public_message(self) -> str:
        if "/" not in self._path:
            return self.message
        return self.message.replace(self._path, os.path.basename(self._path.rstrip("/")) or "/")


class Refused(BankmlError):
    exit_code = 2
    status = 422
    kind = "invalid_model_error"


class UnsupportedModel(Refused):
    status = 501
    kind = "not_supported_error"


class FileMissing(Refused):
    status = 404
    kind = "not_found_error"


class PinMismatch(Refused):
    """503, as for ModelChanged: it can be cured by putting the pinned file back."""

    status = 503
    kind = "unavailable_error"


class ModelChanged(Refused):
    status = 503
    kind = "unavailable_error"


class Truncated(BankmlError):
    """The header needs `needs` bytes and the file has fewer."""

    exit_code = 3
    status = 422
    kind = "invalid_model_error"

    def __init__(self, message: str, needs: int) -> None:
        super().__init__(message)
        self.needs = needs


class InputTooLarge(BankmlError):
    """An input that has to be computed as one micro-batch has more tokens; llama-server's status and kind."""


class OutOfMemory(BankmlError):
    status = 503
    kind = "unavailable_error"

    def __init__(self) -> None:
        super().__init__("there is not enough memory for this request: try again later, or with a shorter prompt")


class EngineFailed(BankmlError):
    status = 502
    kind = "bad_gateway_error"


class EngineTimeout(EngineFailed):
    status = 504
    kind = "gateway_timeout_error"


class RequestError(BankmlError):
    status = 400
    kind = "invalid_request_error"


class ContextExceeded(RequestError):
    """A prompt of `n_prompt_tokens` tokens does not fit a context of `n_ctx`."""

    kind = "exceed_context_size_error"

    def __init__(self, message: str, n_prompt_tokens: int, n_ctx: int) -> None:
        super().__init__(message)
        self.n_prompt_tokens = n_prompt_tokens
        self.n_ctx = n_ctx


class Unauthorized(RequestError):
    status = 401
    kind = "authentication_error"


class HostForbidden(RequestError):
    status = 403
    kind = "permission_error"


class NotFound(RequestError):
    status = 404
    kind = "not_found_error"


class MethodNotAllowed(RequestError):
    """`allowed` are the methods that the path answers: the response's Allow header."""

    status = 405

    def __init__(self, message: str, allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.allowed = tuple(allowed)


class RequestTimeout(RequestError):
    status = 408


class BodyTooLarge(RequestError):
    status = 413


class WrongMediaType(RequestError):
    status = 415


class NotSupported(RequestError):
    status = 501
    kind = "not_supported_error"


class Busy(RequestError):
    status = 503
    kind = "unavailable_error"


class LogUnavailable(Busy):
    """A receipt cannot be recorded, so no answer is given."""


class Cancelled(Exception):
    """The client disconnected or the server is stopping, so no response is sent. Not a BankmlError: nothing failed."""


PREFIXES = {1: "error", 2: "refuse", 3: "need_more"}
"""The first word of the line about an error, by exit code."""


NO_THREAD = "can't start new thread"
"""The message of Python's RuntimeError about a thread that the system does not start."""


INTERNAL = "error: internal error in bankml"
"""How the line about a fault of this program begins."""

LOST_ERROR = "error return without exception set"
"""The message of CPython's SystemError where it had no memory for the MemoryError itself."""


def final_line(error: BaseException) -> str:
    """The line about `error` that a command ends with on stderr, and that the C API gives as its reason."""
    if isinstance(error, BankmlError):
        return f"{PREFIXES[error.exit_code]}: {one_line(error.message)}"
    if isinstance(error, KeyboardInterrupt):
        return "error: interrupted"
    if isinstance(error, MemoryError) or (isinstance(error, SystemError) and str(error) == LOST_ERROR):
        return "error: out of memory"
    if isinstance(error, RuntimeError) and str(error) == NO_THREAD:
        return "error: out of memory: the system starts no further thread"
    if isinstance(error, OSError):
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return f"error: {one_line(place + (error.strerror or str(error)).lower())}"
    if isinstance(error, ImportError):
        return f"error: a Python module cannot be imported: {one_line(first_cause(error))}"
    return f"{INTERNAL}: {one_line(repr(error))}"


def first_cause(error: BaseException) -> str:
    """The first line of the message at the root of `error`: numpy puts pages of advice before its cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def one_line(text: str) -> str:
    """`text` with control characters and line ends escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Prefixes the file's name to a Refused that was raised for its header alone."""
    try:
        yield
    except Refused as error:
        if error.message.startswith(name):
            raise
        raise type(error)(f"{name}: {error.message}") from error
