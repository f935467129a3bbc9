"""OLMo 2 and 3: no norms before attention and MLP but after them, and norms of all of Q and of all of K.

OLMo 3 is OLMo 2 with a sliding window in all but each fourth layer.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bankml.model.architectures import llama
from bankml.model.keys import MetadataKeys
from bankml.model.shape import (
    Extents,
    HuggingFaceMapping,
    LayerTensors,
    ModelConfig,
    ModelShape,
    RopeConfig,
    WindowConfig,
    unsupported,
)

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "olmo2"
ROPE_NEOX = True
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS = frozenset({"attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base_swa"})
FULL_EVERY = 4  # layers

HUGGING_FACE = HuggingFaceMapping(
    class_names=("Olmo2ForCausalLM",),
    layer={
        **{name: stored for name, stored in llama.HUGGING_FACE.layer.items() if not name.endswith("_norm")},
        "attn_q_norm": "self_attn.q_norm",
        "attn_k_norm": "self_attn.k_norm",
        "post_attention_norm": "post_attention_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
    default_head_size=None,
    kv_heads_required=False,
    pairs_rope_rows=False,
    extra_keys=lambda shape: {},
    head_size_keys="given",
    fields={"sliding_window": (), "tie_word_embeddings": (False,)},
)


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    if config.tied:
        raise unsupported("tensor 'output.weight' is missing")
    size = keys.count("attention.sliding_window", 0, least=0)
    if size == 0:
        return config
    # The reference's graph has the same base there, whatever rope.freq_base_swa is, and no scaling.
    rope = RopeConfig(config.rope.base, 1.0, config.rope.original_context, 1.0)
    return replace(config, window=WindowConfig(size, keys.window_layers(FULL_EVERY, config.n_layer), rope))


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return {}


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, llama.attention_tensors(shape)
    mlp = {"ffn_gate": (d, ff), "ffn_up": (d, ff), "ffn_down": (ff, d)}
    norms = {"attn_q_norm": (shape.q_width,), "attn_k_norm": (shape.kv_width,)}
    after = {"post_attention_norm": (d,), "post_ffw_norm": (d,)}
    return LayerTensors({**attention.required, **norms, **after, **mlp}, attention.optional)


class Olmo2Block:
    """x += norm(O attend(rope(norm(Q x)), rope(norm(K x)), V x)), then x += norm(D (silu(G x) * U x))."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.q_width = ops.config.q_width
        self.qkv = ops.qkv(i)
        self.q_norm, self.k_norm = ops.norm(i, "attn_q_norm"), ops.norm(i, "attn_k_norm")
        self.rope, self.attention = ops.rope(i), ops.attention(i)
        self.attn_output, self.attn_post_norm = ops.linear(i, "attn_output"), ops.norm(i, "post_attention_norm")
        self.mlp, self.ffn_post_norm = ops.mlp(i), ops.norm(i, "post_ffw_norm")

    def attend(self, b: "Buffers", cells: "LayerCells") -> None:
        self.qkv(b.x, b.qkv)
        self.q_norm.per_head(b.qkv, 0, 1)
        self.k_norm.per_head(b.qkv, self.q_width, 1)
        self.rope(b.rope, b.qkv)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output(b.attended, b.normed)
        self.attn_post_norm.add_to(b.normed, b.x)

    def feed_forward(self, b: "Buffers") -> None:
        self.mlp(b.x, b.normed, b.gate_up, b.gated)
        self.ffn_post_norm.add_to(b.normed, b.x)


def block(ops: "ModelOps", i: int) -> Olmo2Block:
    return Olmo2Block(ops, i)
