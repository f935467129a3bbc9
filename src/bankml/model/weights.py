"""A verified file's tensors, in memory: the bytes that were hashed (bankml.gate.contents)."""

import numpy as np
import numpy.typing as npt

from bankml.gate.take import take_contents
from bankml.gate.verify import Verified

WORD_BYTES = 4  # where the values of any type may begin


class Weights:
    """The tensors of one verified file, by name, as flat byte or float32 arrays that cannot be written."""

    def __init__(self, verified: Verified) -> None:
        """Takes the bytes that `verify` read, or reads and hashes the file. Raises ModelChanged, FileProblem,
        MemoryError."""
        self._data_offset = verified.header.data_offset
        self._tensors = {t.name: t for t in verified.header.tensors}
        self._bytes = np.frombuffer(take_contents(verified), np.uint8)
        self._bytes.flags.writeable = False

    def has(self, name: str) -> bool:
        return name in self._tensors

    def blocks(self, name: str) -> npt.NDArray[np.uint8]:
        """The tensor's bytes as they are in the file, `[nbytes]`; a copy where no float could begin."""
        tensor = self._tensors[name]
        start = self._data_offset + tensor.offset
        stored = self._bytes[start : start + tensor.nbytes]
        return stored if start % WORD_BYTES == 0 else stored.copy()

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """An F32 tensor's values, `[elements]`."""
        return self.blocks(name).view(np.float32)

    def type(self, name: str) -> int:
        """ggml's number of the tensor's type."""
        return self._tensors[name].type.id

    def shape(self, name: str) -> tuple[int, ...]:
        """The tensor's extents, row length first."""
        return self._tensors[name].shape
