"""A verified file's tensors, mapped: nothing is copied, and the mapping lives as long as anything uses it."""

import mmap
import os

import numpy as np
import numpy.typing as npt

from bankml.errors import FileProblem, ModelChanged
from bankml.gate.identity import FileIdentity
from bankml.gate.verify import Verified


class Weights:
    """The tensors of one verified file, by name, as flat byte or float32 arrays that cannot be written."""

    def __init__(self, verified: Verified) -> None:
        """Maps the file. Raises ModelChanged when it is not the file that was verified."""
        try:
            descriptor = os.open(verified.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise FileProblem(f"cannot read {verified.path}: {error.strerror}") from error
        try:
            if FileIdentity.of(descriptor) != verified.identity:
                raise ModelChanged(f"{os.path.basename(verified.path)} changed since it was verified")
            mapping = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)
        if hasattr(mmap, "MADV_WILLNEED"):
            mapping.madvise(mmap.MADV_WILLNEED)
        self._bytes = np.frombuffer(mapping, np.uint8)
        self._data_offset = verified.header.data_offset
        self._tensors = {t.name: t for t in verified.header.tensors}

    def blocks(self, name: str) -> npt.NDArray[np.uint8]:
        """The tensor's bytes as they stand in the file."""
        tensor = self._tensors[name]
        start = self._data_offset + tensor.offset
        return self._bytes[start : start + tensor.nbytes]

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """An F32 tensor's values."""
        return self.blocks(name).view(np.float32)

    def shape(self, name: str) -> tuple[int, ...]:
        """The tensor's extents, row length first."""
        return self._tensors[name].shape
