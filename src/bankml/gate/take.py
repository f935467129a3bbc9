"""A verified file's bytes for the model that computes with them."""

import mmap

from bankml.errors import FileProblem, ModelChanged
from bankml.files import open_regular
from bankml.gate.contents import memory_for
from bankml.gate.digest import sha256_rest
from bankml.gate.identity import FileIdentity
from bankml.gate.verify import Verified


def take_contents(verified: Verified) -> mmap.mmap:
    """The bytes whose sha256 is `verified.sha256`: those that `verify` kept, else read and hashed now.

    Raises ModelChanged when the file is no longer the one that was verified, MemoryError.
    """
    return verified.contents.take() or _read_again(verified)


def _read_again(verified: Verified) -> mmap.mmap:
    memory = memory_for(verified.header)
    try:
        with open_regular(verified.path) as file:
            same = FileIdentity.of(file.fileno()) == verified.identity
            with memoryview(memory) as view:
                same = same and sha256_rest(file, verified.path, b"", memory=view) == verified.sha256
            same = same and FileIdentity.of(file.fileno()) == verified.identity
    except FileProblem as error:
        raise ModelChanged(f"{verified.name} changed since it was verified: {error.public_message}") from error
    if not same:
        raise ModelChanged(f"{verified.name} changed since it was verified")
    return memory
