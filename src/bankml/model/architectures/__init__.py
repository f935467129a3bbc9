"""The supported architectures, one module each: its name, its own keys, its tensors, its Hugging Face mapping and its
block's forward pass."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from bankml.model.architectures import llama, qwen3
from bankml.model.shape import HuggingFaceMapping, MetadataKeys, ModelShape

if TYPE_CHECKING:
    from bankml.model.buffers import Buffers
    from bankml.model.ops import ModelOps


class Block(Protocol):
    """One layer of a decoder."""

    def attend(self, b: "Buffers") -> None:
        """b.x += attention of b.x."""

    def feed_forward(self, b: "Buffers") -> None:
        """b.x += MLP of b.x."""


class Architecture(Protocol):
    """What a module in this folder defines."""

    @property
    def NAME(self) -> str:
        """The value of general.architecture."""

    @property
    def ROPE_NEOX(self) -> bool:
        """RoPE on the halves of a head, else on adjacent pairs."""

    @property
    def HUGGING_FACE(self) -> HuggingFaceMapping: ...

    def check_keys(self, keys: MetadataKeys) -> None:
        """Reads the keys of this architecture alone. Raises Refused for values that are not supported."""

    def layer_tensors(self, shape: ModelShape) -> dict[str, tuple[int, ...]]:
        """The tensors of one layer, named without `blk.N.` and `.weight`: their extents, row length first."""

    def block(self, ops: "ModelOps", i: int) -> Block:
        """Layer i."""


ARCHITECTURES: Mapping[str, Architecture] = {llama.NAME: llama, qwen3.NAME: qwen3}
