"""Granite: Llama with four factors, of the embedding, of both branches, of the scores and of the logits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bankml.model.architectures import llama
from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape, float32

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "granite"
ROPE_NEOX = False
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS = frozenset({"attention.scale", "embedding_scale", "residual_scale", "logit_scale"})

HUGGING_FACE = HuggingFaceMapping(
    class_names=("GraniteForCausalLM",),
    layer=llama.HUGGING_FACE.layer,
    default_head_size=None,
    kv_heads_required=False,
    pairs_rope_rows=True,
    extra_keys=llama.HUGGING_FACE.extra_keys,
    head_size_keys="never",
    factors={
        "attention.scale": ("attention_multiplier", 1.0),
        "embedding_scale": ("embedding_multiplier", 1.0),
        "residual_scale": ("residual_multiplier", 1.0),
        "logit_scale": ("logits_scaling", 1.0),
    },
)


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    keys.require_default("rope.scaling.finetuned", True)  # false: without RoPE
    return replace(
        config,
        attention_scale=keys.number("attention.scale", 0.0) or config.attention_scale,
        embedding_factor=keys.number("embedding_scale", 0.0) or 1.0,
        residual_factor=keys.number("residual_scale", 0.0) or 1.0,
        logit_factor=float32(1 / keys.number("logit_scale", least=1e-30)),
    )


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return llama.shared_tensors(shape)


def layer_tensors(shape: ModelShape) -> LayerTensors:
    return llama.layer_tensors(shape)


class GraniteBlock:
    """x += r O attend(rope(Q x'), rope(K x'), V x'), then x += r D (silu(G x'') * U x''); x', x'' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.factor = ops.config.residual_factor
        self.attn_norm = ops.norm(i, "attn_norm")
        self.qkv = ops.qkv(i)
        self.rope, self.attention = ops.rope(i), ops.attention(i)
        self.attn_output = ops.linear(i, "attn_output")
        self.ffn_norm = ops.norm(i, "ffn_norm")
        self.mlp = ops.mlp(i)

    def attend(self, b: "Buffers", cells: "LayerCells") -> None:
        self.attn_norm(b.x, b.normed)
        self.qkv(b.normed, b.qkv)
        self.rope(b.rope, b.qkv)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output.add_to(b.attended, b.x, self.factor)

    def feed_forward(self, b: "Buffers") -> None:
        self.ffn_norm(b.x, b.normed)
        self.mlp.add_to(b.normed, b.x, b.gate_up, b.gated, self.factor)


def block(ops: "ModelOps", i: int) -> GraniteBlock:
    return GraniteBlock(ops, i)
