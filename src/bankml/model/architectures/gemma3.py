"""Gemma 3: Gemma 2 with norms on every head of Q and K, and a sliding window, with a RoPE of its own, in five of six
layers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bankml.model.architectures import gemma2
from bankml.model.keys import MetadataKeys
from bankml.model.shape import (
    Extents,
    HuggingFaceMapping,
    LayerTensors,
    ModelConfig,
    ModelShape,
    RopeConfig,
    WindowConfig,
)

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "gemma3"
ROPE_NEOX = True
PARTIAL_ROPE = True
ROPE_SCALING: tuple[str, ...] = ()
KEYS = frozenset(
    {
        "attention.sliding_window",
        "attention.sliding_window_pattern",
        "final_logit_softcapping",
        "rope.freq_base_swa",
    }
)
FULL_EVERY = 6
LAYERS_OF_27B = 62
LOCAL_BASE = 10000.0

HUGGING_FACE: HuggingFaceMapping | None = None


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    scaled = replace(
        gemma2.scaled_queries(config, LAYERS_OF_27B), logit_softcap=keys.number("final_logit_softcapping", 0.0)
    )
    size, rope = keys.count("attention.sliding_window", 0, least=0), config.rope
    if size == 0:
        return scaled
    keys.require_default("rope.scaling.type", "none", "linear")  # YaRN's magnitude would be the local layers' too
    local = RopeConfig(
        keys.number("rope.freq_base_swa", LOCAL_BASE, least=1), 1.0, rope.original_context, rope.attention_factor
    )
    return replace(scaled, window=WindowConfig(size, keys.window_layers(FULL_EVERY, config.n_layer), local))


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return {}


def layer_tensors(shape: ModelShape) -> LayerTensors:
    tensors, head = gemma2.layer_tensors(shape), (shape.head_size,)
    return LayerTensors({**tensors.required, "attn_q_norm": head, "attn_k_norm": head}, tensors.optional)


class Gemma3Block(gemma2.GemmaMlp):
    """x += norm(O attend(rope(norm(Q x')), rope(norm(K x')), V x')), then Gemma 2's MLP; x' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        super().__init__(ops, i)
        self.heads, self.kv_heads, self.q_width = ops.config.heads, ops.config.kv_heads, ops.config.q_width
        self.attn_norm, self.attn_post_norm = ops.norm(i, "attn_norm"), ops.norm(i, "post_attention_norm")
        self.qkv = ops.qkv(i)
        self.q_norm, self.k_norm = ops.norm(i, "attn_q_norm"), ops.norm(i, "attn_k_norm")
        self.rope, self.attention = ops.rope(i), ops.attention(i)
        self.attn_output = ops.linear(i, "attn_output")

    def attend(self, b: "Buffers", cells: "LayerCells") -> None:
        self.attn_norm(b.x, b.normed)
        self.qkv(b.normed, b.qkv)
        self.q_norm.per_head(b.qkv, 0, self.heads)
        self.k_norm.per_head(b.qkv, self.q_width, self.kv_heads)
        self.rope(b.rope, b.qkv)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output(b.attended, b.normed)
        self.attn_post_norm.add_to(b.normed, b.x)


def block(ops: "ModelOps", i: int) -> Gemma3Block:
    return Gemma3Block(ops, i)
