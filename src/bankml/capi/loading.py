"""What is loaded while a model's file is hashed: hashing releases the interpreter lock, so both run at once."""

import mmap
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from bankml.errors import BankmlError, EngineFailed, first_cause

if TYPE_CHECKING:
    from bankml.gguf.header import Header
    from bankml.text.tokenizer import Tokenizer

Quietly = Callable[[Callable[[], object]], object]
"""From libbankml: calls a function that imports numpy or starts a thread, and undoes their effects on the host."""

NUMPY_BYTES = 128 << 20
"""Bytes of address space: more than importing numpy takes, less than any model takes after that."""


class Loading:
    """Imports the modules that generate, and builds the tokenizer of an accepted header, in a thread of its own.

    `modules` are imported after numpy; they are named by the caller, so that this module imports none of them.
    """

    def __init__(self, quietly: Quietly, modules: Sequence[str]) -> None:
        self._quietly = quietly
        self._modules = modules
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None
        self._tokenizer: Tokenizer | None = None

    def begin(self, header: "Header") -> None:
        """Starts the thread; where the system has none left, everything is done here, now."""
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
        """None where building it failed: the caller builds it again and gets the error. Raises what an import did."""
        self.wait()
        if self._failure is not None:
            raise self._failure
        return self._tokenizer

    def _load(self, header: "Header") -> None:
        try:
            _import_all(self._quietly, self._modules)
            self._tokenizer = _tokenizer(header)
        except Exception as error:
            self._failure = error


def _import_all(quietly: Quietly, modules: Sequence[str]) -> None:
    if "numpy" not in sys.modules:
        _require_address_space()
        try:
            quietly(lambda: import_module("numpy"))
        except ImportError as error:
            raise EngineFailed(f"numpy cannot be imported: {first_cause(error)}") from error
    for module in modules:
        import_module(module)


def _tokenizer(header: "Header") -> "Tokenizer | None":
    from bankml.text.tokenizer import Tokenizer

    try:
        return Tokenizer.from_header(header)
    except BankmlError:
        return None


def _require_address_space() -> None:
    """Raises MemoryError where numpy's OpenBLAS would not get its memory: it would end the process."""
    try:
        mmap.mmap(-1, NUMPY_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        raise MemoryError from None
