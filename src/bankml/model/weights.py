"""A verified file's tensors, in memory: the bytes that were hashed (bankml.gate.contents)."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.gate.take import take_contents
from bankml.gate.verify import Verified
from bankml.gguf.header import TensorInfo

WORD_BYTES = 4  # where the values of any type may begin
ARRANGED = frozenset(one.id for one in _native.weight_formats() if one.arranged)
"""Types whose rows products read in another order than the file's."""


class Weights:
    """The tensors of one verified file, by name, as flat byte or float32 arrays that cannot be written."""

    def __init__(self, verified: Verified) -> None:
        """Takes the bytes that `verify` read, or reads and hashes the file. Raises ModelChanged, FileProblem,
        MemoryError."""
        self._data_offset = verified.header.data_offset
        self._tensors = {t.name: t for t in verified.header.tensors}
        self._bytes = np.frombuffer(take_contents(verified), np.uint8)
        self._arrange(verified.header.tensors)
        self._bytes.flags.writeable = False

    def _arrange(self, tensors: Iterable[TensorInfo]) -> None:
        """Puts rows into the order that products read, in place: a second copy would be as large as the file."""
        for tensor in tensors:
            if tensor.type.id in ARRANGED:
                columns, rows = tensor.shape[0], tensor.shape[1] if len(tensor.shape) > 1 else 1
                _native.arrange(tensor.type.id, columns, rows, self._stored(tensor))

    def has(self, name: str) -> bool:
        return name in self._tensors

    def blocks(self, name: str) -> npt.NDArray[np.uint8]:
        """The tensor's bytes, `[nbytes]`, in the order in which products read them; a copy where no float could
        begin."""
        tensor = self._tensors[name]
        stored = self._stored(tensor)
        return stored if (self._data_offset + tensor.offset) % WORD_BYTES == 0 else stored.copy()

    def _stored(self, tensor: TensorInfo) -> npt.NDArray[np.uint8]:
        start = self._data_offset + tensor.offset
        return self._bytes[start : start + tensor.nbytes]

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """An F32 tensor's values, `[elements]`."""
        return self.blocks(name).view(np.float32)

    def type(self, name: str) -> int:
        """ggml's number of the tensor's type."""
        return self._tensors[name].type.id

    def shape(self, name: str) -> tuple[int, ...]:
        """The tensor's extents, row length first."""
        return self._tensors[name].shape
