"""SmolLM3: Llama without RoPE in every fourth layer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bankml.model.architectures import llama, qwen2
from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "smollm3"
ROPE_NEOX = False
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS: frozenset[str] = frozenset()
NO_ROPE_EVERY = 4  # layers

HUGGING_FACE = HuggingFaceMapping(
    class_names=("SmolLM3ForCausalLM",),
    layer=llama.HUGGING_FACE.layer,
    default_head_size=None,
    kv_heads_required=True,
    pairs_rope_rows=True,
    extra_keys=llama.HUGGING_FACE.extra_keys,
    head_size_keys="given",
    fields={"no_rope_layer_interval": (NO_ROPE_EVERY,)},
    rope_base=2000000.0,
)


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    """SmolLM3 has no keys of its own."""
    return config


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return {}


def layer_tensors(shape: ModelShape) -> LayerTensors:
    return qwen2.layer_tensors(shape)


class NoRopeBlock(llama.LlamaBlock):
    """Llama's, with x += O attend(Q x', K x', V x')."""

    def attend(self, b: "Buffers", cells: "LayerCells") -> None:
        self.attn_norm(b.x, b.normed)
        self.qkv(b.normed, b.qkv)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output.add_to(b.attended, b.x)


def block(ops: "ModelOps", i: int) -> llama.LlamaBlock:
    return NoRopeBlock(ops, i) if (i + 1) % NO_ROPE_EVERY == 0 else llama.LlamaBlock(ops, i)
