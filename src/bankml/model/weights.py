"""A verified file's tensors, in memory: what was hashed is what is computed with, whatever becomes of the file.

A mapping would follow every later write to the file into the middle of an answer, and end the process when the file is
cut short. The bytes are read instead, between two looks at the file's identity.
"""

import io
import os

import numpy as np
import numpy.typing as npt

from bankml.errors import ModelChanged
from bankml.files import problem
from bankml.gate.identity import FileIdentity
from bankml.gate.verify import Verified
from bankml.model.pages import zeros

READ_SIZE = 64 << 20
WORD_BYTES = 4  # where the values of any type may begin


class Weights:
    """The tensors of one verified file, by name, as flat byte or float32 arrays that cannot be written."""

    def __init__(self, verified: Verified) -> None:
        """Reads the file. Raises ModelChanged when it is not, or does not stay, the file that was verified."""
        self._data_offset = verified.header.data_offset
        self._tensors = {t.name: t for t in verified.header.tensors}
        self._bytes = zeros((verified.identity.size,), np.uint8)
        try:
            with open(verified.path, "rb", buffering=0) as file:
                same = FileIdentity.of(file.fileno()) == verified.identity
                same = same and _fill(file, self._bytes.data)
                same = same and FileIdentity.of(file.fileno()) == verified.identity
        except OSError as error:
            raise problem("read", verified.path, error) from error
        if not same:
            raise ModelChanged(f"{os.path.basename(verified.path)} changed since it was verified")
        self._bytes.flags.writeable = False

    def blocks(self, name: str) -> npt.NDArray[np.uint8]:
        """The tensor's bytes as they stand in the file; a copy where no float could begin."""
        tensor = self._tensors[name]
        start = self._data_offset + tensor.offset
        stored = self._bytes[start : start + tensor.nbytes]
        return stored if start % WORD_BYTES == 0 else stored.copy()

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """An F32 tensor's values."""
        return self.blocks(name).view(np.float32)

    def type(self, name: str) -> int:
        """ggml's number of the tensor's type."""
        return self._tensors[name].type.id

    def shape(self, name: str) -> tuple[int, ...]:
        """The tensor's extents, row length first."""
        return self._tensors[name].shape


def _fill(file: io.RawIOBase, memory: memoryview) -> bool:
    """Reads until `memory` is full; False where the file ends before."""
    while memory:
        got = file.readinto(memory[:READ_SIZE])
        if not got:
            return False
        memory = memory[got:]
    return True
