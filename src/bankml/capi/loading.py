"""What opening a model loads while its file is hashed: hashing needs no interpreter, and loading little else."""

import mmap
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from bankml.errors import BankmlError, EngineFailed

if TYPE_CHECKING:
    from bankml.gguf.header import Header
    from bankml.text.tokenizer import Tokenizer

Quietly = Callable[[Callable[[], object]], object]
"""libbankml's own: calls a function that loads numpy or begins a thread, so that the host does not notice."""

NUMPY_BYTES = 128 << 20
"""Of address space: more than numpy takes when it is loaded, and less than any model does after that."""


class Loading:
    """The modules that answer, and the tokenizer of a header that has been judged, by a thread of its own."""

    def __init__(self, quietly: Quietly) -> None:
        self._quietly = quietly
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None
        self._tokenizer: Tokenizer | None = None

    def begin(self, header: "Header") -> None:
        """Where no thread is to be had, the calling one does it all, now."""
        thread = threading.Thread(target=self._load, args=(header,), name="bankml-loading", daemon=True)
        try:
            self._quietly(thread.start)
        except RuntimeError:
            self._load(header)
        else:
            self._thread = thread

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def tokenizer(self) -> "Tokenizer | None":
        """None: making one failed, as it will for whoever tries again. Raises what importing raised."""
        self.wait()
        if self._failure is not None:
            raise self._failure
        return self._tokenizer

    def _load(self, header: "Header") -> None:
        try:
            _import_all(self._quietly)
            self._tokenizer = _tokenizer(header)
        except Exception as error:
            self._failure = error


def _import_all(quietly: Quietly) -> None:
    if "numpy" not in sys.modules:
        _look_for_room()
        try:
            quietly(lambda: import_module("numpy"))
        except ImportError as error:
            raise EngineFailed(f"numpy cannot be imported: {first_line(error)}") from error
    import_module("bankml.capi.handle")
    import_module("bankml.library.load")


def _tokenizer(header: "Header") -> "Tokenizer | None":
    from bankml.text.tokenizer import Tokenizer

    try:
        return Tokenizer.from_header(header)
    except BankmlError:
        return None


def _look_for_room() -> None:
    """Raises MemoryError where numpy's OpenBLAS would not find its memory: it ends the process then."""
    try:
        mmap.mmap(-1, NUMPY_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        raise MemoryError from None


def first_line(error: BaseException) -> str:
    """What it says was the first cause: numpy puts pages of advice before that."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
