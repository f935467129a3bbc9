"""The supported architectures, one module each: its name, its own keys, its tensors, its Hugging Face mapping and its
block's forward pass. A decoder generates text and can give embeddings too; an encoder gives embeddings alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from bankml.model.architectures import (
    bert,
    gemma2,
    gemma3,
    granite,
    llama,
    mistral3,
    nomic_bert,
    olmo2,
    phi3,
    qwen2,
    qwen3,
    qwen3moe,
    smollm3,
)
from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape

if TYPE_CHECKING:
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps


class Block(Protocol):
    """One layer of a decoder."""

    def attend(self, b: "Buffers", cells: "LayerCells") -> None:
        """b.x += attention of b.x; `cells` is where its rows stand in the layer's K/V cache."""

    def feed_forward(self, b: "Buffers") -> None:
        """b.x += MLP of b.x."""


class Layer(Protocol):
    """One layer of an encoder."""

    def __call__(self, b: "Buffers", cells: "LayerCells") -> None:
        """Replaces b.x by the layer's output; `cells` is memory for the keys and values of b.x."""


class Described(Protocol):
    """What each module in this folder defines."""

    @property
    def NAME(self) -> str:
        """The value of general.architecture."""

    @property
    def ROPE_NEOX(self) -> bool:
        """RoPE on the halves of a head, else on adjacent pairs."""

    @property
    def PARTIAL_ROPE(self) -> bool:
        """Whether RoPE may turn only the first values of a head."""

    @property
    def ROPE_SCALING(self) -> tuple[str, ...]:
        """The values of rope.scaling.type that it has besides none, linear and yarn."""

    @property
    def KEYS(self) -> frozenset[str]:
        """The keys that it reads of those that others refuse."""

    @property
    def HUGGING_FACE(self) -> HuggingFaceMapping | None:
        """None: `bankml convert` does not read it."""

    def configure(self, config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
        """The configuration with the architecture's own keys. Raises Refused for values that are not supported."""

    def layer_tensors(self, shape: ModelShape) -> LayerTensors: ...


class Architecture(Described, Protocol):
    """What the module of a decoder defines."""

    def shared_tensors(self, shape: ModelShape) -> Mapping[str, Extents]:
        """Optional tensors that belong to no layer, by their full names."""

    def block(self, ops: "ModelOps", i: int) -> Block:
        """Layer i."""


class EncoderArchitecture(Described, Protocol):
    """What the module of an encoder defines. Its tokens see each other in both directions, and there is no cache."""

    def outer_tensors(self, shape: ModelShape) -> LayerTensors:
        """The tensors that belong to no layer, by their full names, besides the embedding of the tokens."""

    def layer(self, ops: "ModelOps", i: int) -> Layer:
        """Layer i."""


_MODULES: tuple[Architecture, ...] = (
    llama,
    mistral3,
    qwen2,
    qwen3,
    qwen3moe,
    gemma2,
    gemma3,
    phi3,
    smollm3,
    granite,
    olmo2,
)

ARCHITECTURES: Mapping[str, Architecture] = {one.NAME: one for one in _MODULES}
"""The decoders."""

_ENCODERS: tuple[EncoderArchitecture, ...] = (bert, nomic_bert)

ENCODERS: Mapping[str, EncoderArchitecture] = {one.NAME: one for one in _ENCODERS}

DESCRIBED: Mapping[str, Described] = {**ARCHITECTURES, **ENCODERS}
