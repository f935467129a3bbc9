"""The verified model of a command: `serve`, `demo` and `generate` open no other."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from bankml.cli.output import file_bar
from bankml.errors import UsageError
from bankml.files import problem, unreadable

if TYPE_CHECKING:
    from bankml.gate.verify import Verified
    from bankml.gguf.header import Header


def fork_of(file: str, fork: str | None) -> str:
    """The file of records: `fork`, or the one beside the model.

    Raises UsageError where there is nothing beside it, FileProblem where there is no model `file` either.
    """
    if fork is None:
        if os.path.isdir(file):
            raise unreadable(file, "not a regular file")
        fork = f"{file}.FORK.json"
        if not os.path.lexists(fork):
            try:
                os.stat(file)
            except OSError as error:
                raise problem("read", file, error) from error
            raise UsageError(f"there is no {fork} beside the model: name its file of records with --fork")
    return fork


def verified_model(file: str, fork: str) -> "Verified":
    """`file`, guarded, hashed and compared with its record in `fork`, with a progress bar on a terminal.

    Raises Refused, Truncated, FileProblem.
    """
    from bankml.gate.verify import verify

    with file_bar("hashing", file) as progress:
        return verify(file, fork, progress)


def model_to_open(file: str, fork: str, require: "Callable[[Header], object]") -> "Verified":
    """As `verified_model`, for a model that this process computes with: what is hashed is kept in memory for it.

    `require` raises Refused, before anything is hashed, for a header that it cannot compute with. Raises MemoryError.
    """
    from bankml.gate.contents import memory_for
    from bankml.gate.verify import verify

    with file_bar("reading", file) as progress:
        return verify(file, fork, progress, require=require, into=memory_for)
