"""Qwen3: Llama with an RMS norm on every head of Q and K, and RoPE on the halves of a head."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bankml.model.architectures import llama
from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "qwen3"
ROPE_NEOX = True
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS: frozenset[str] = frozenset()

HUGGING_FACE = HuggingFaceMapping(
    class_names=("Qwen3ForCausalLM",),
    layer={**llama.HUGGING_FACE.layer, "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"},
    default_head_size=128,
    kv_heads_required=True,
    pairs_rope_rows=False,
    extra_keys=lambda shape: {},
)


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    """Qwen3 has no keys of its own."""
    return config


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    """A reranker has a matrix of classes."""
    return {"cls.output.weight": (shape.n_embd, shape.classes)}


def attention_tensors(shape: ModelShape) -> LayerTensors:
    """Llama's, with the norms of Q's and K's heads."""
    attention, head = llama.attention_tensors(shape), (shape.head_size,)
    return LayerTensors({**attention.required, "attn_q_norm": head, "attn_k_norm": head}, attention.optional)


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, attention_tensors(shape)
    mlp = {"ffn_gate": (d, ff), "ffn_up": (d, ff), "ffn_down": (ff, d)}
    return LayerTensors({**attention.required, "attn_norm": (d,), "ffn_norm": (d,), **mlp}, attention.optional)


class Qwen3Attention:
    """x += O attend(rope(norm(Q x')), rope(norm(K x')), V x'); x' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.heads, self.kv_heads, self.q_width = ops.config.heads, ops.config.kv_heads, ops.config.q_width
        self.attn_norm = ops.norm(i, "attn_norm")
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
        self.attn_output.add_to(b.attended, b.x)


class Qwen3Block(Qwen3Attention):
    """Qwen3's attention, then x += D (silu(G x') * U x'); x' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        super().__init__(ops, i)
        self.ffn_norm = ops.norm(i, "ffn_norm")
        self.mlp = ops.mlp(i)

    def feed_forward(self, b: "Buffers") -> None:
        self.ffn_norm(b.x, b.normed)
        self.mlp.add_to(b.normed, b.x, b.gate_up, b.gated)


def block(ops: "ModelOps", i: int) -> Qwen3Block:
    return Qwen3Block(ops, i)
