"""Where a GGUF file's tensors lie: names and places checked as llama.cpp b11192 checks them.

A tensor has whole rows of blocks, begins where the one before it in the header ends, padded to the alignment, and ends
inside the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bankml.gguf.block_types import LEGACY_Q2_0, Q2_0, BlockType
from bankml.gguf.values import shown


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the header: `shape` with the row length (ne0) first, `offset` from the data's start."""

    name: str
    shape: tuple[int, ...]
    type: BlockType
    offset: int
    nbytes: int

    @property
    def elements(self) -> int:
        product = 1
        for extent in self.shape:
            product *= extent
        return product


def name_problem(tensors: Sequence[TensorInfo]) -> str | None:
    """What is wrong with the tensors' names, which must differ; None when nothing is."""
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            return f"two tensors have the name {shown(tensor.name)}"
        seen.add(tensor.name)
    return None


def layout_problem(tensors: Sequence[TensorInfo], size: int, alignment: int) -> str | None:
    """What is wrong with the tensors' places in a data section of `size` bytes; None when nothing is."""
    expected = 0
    for index, tensor in enumerate(tensors):
        if tensor.offset < expected and index:
            return _too_short(tensors[index - 1], tensor.offset - tensors[index - 1].offset)
        if tensor.offset != expected:
            return f"tensor {shown(tensor.name)} has offset {tensor.offset} where {expected} is expected"
        available = size - tensor.offset
        if tensor.nbytes > available:
            following = tensors[index + 1].offset - tensor.offset if index + 1 < len(tensors) else available
            return _too_short(tensor, min(following, available))
        expected += -(-tensor.nbytes // alignment) * alignment
    return None


def _too_short(tensor: TensorInfo, available: int) -> str:
    """The sentence about a tensor that lacks bytes that its shape and type need."""
    have = max(available, 0)
    name = shown(tensor.name)
    legacy = tensor.type is Q2_0 and tensor.shape[0] % LEGACY_Q2_0.weights == 0
    if legacy and have >= LEGACY_Q2_0.nbytes(tensor.elements):
        return f"tensor {name} has {have} bytes, Q2_0 in groups of 64 needs {tensor.nbytes}: a legacy group-128 file"
    return f"tensor {name} needs {tensor.nbytes} bytes and has {have} before the next tensor or the end of the file"
