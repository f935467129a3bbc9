"""Qwen3: Llama with an RMS norm on every head of Q and K, and RoPE on the halves of a head."""

from typing import TYPE_CHECKING

from bankml.model.architectures import llama
from bankml.model.shape import HuggingFaceMapping, MetadataKeys, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.ops import ModelOps

NAME = "qwen3"
ROPE_NEOX = True

HUGGING_FACE = HuggingFaceMapping(
    class_name="Qwen3ForCausalLM",
    layer={**llama.HUGGING_FACE.layer, "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"},
    default_head_size=128,
    kv_heads_required=True,
    pairs_rope_rows=False,
    extra_keys=lambda shape: {},
)


def check_keys(keys: MetadataKeys) -> None:
    """Qwen3 has no keys of its own."""


def layer_tensors(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    head = (shape.head_size,)
    return llama.layer_tensors(shape) | {"attn_q_norm": head, "attn_k_norm": head}


class Qwen3Block:
    """x += O attend(rope(norm(Q x')), rope(norm(K x')), V x'), then x += D (silu(G x'') * U x''); x', x'' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.heads, self.kv_heads, self.head_size = ops.config.heads, ops.config.kv_heads, ops.config.head_size
        self.attn_norm = ops.norm(f"blk.{i}.attn_norm")
        self.qkv = ops.linear(f"blk.{i}.attn_q", f"blk.{i}.attn_k", f"blk.{i}.attn_v")
        self.q_norm, self.k_norm = ops.norm(f"blk.{i}.attn_q_norm"), ops.norm(f"blk.{i}.attn_k_norm")
        self.rope, self.attention = ops.rope, ops.attention(i)
        self.attn_output = ops.linear(f"blk.{i}.attn_output")
        self.ffn_norm = ops.norm(f"blk.{i}.ffn_norm")
        self.mlp = ops.mlp(f"blk.{i}.ffn_gate", f"blk.{i}.ffn_up", f"blk.{i}.ffn_down")

    def attend(self, b: "Buffers") -> None:
        self.attn_norm(b.x, b.normed)
        self.qkv(b.normed, b.qkv)
        self.q_norm.per_head(b.qkv, 0, self.heads)
        self.k_norm.per_head(b.qkv, self.heads * self.head_size, self.kv_heads)
        self.rope(b.rope, b.qkv)
        self.attention(b.qkv, b.attended)
        self.attn_output.add_to(b.attended, b.x)

    def feed_forward(self, b: "Buffers") -> None:
        self.ffn_norm(b.x, b.normed)
        self.mlp.add_to(b.normed, b.x, b.gate_up, b.gated)


def block(ops: "ModelOps", i: int) -> Qwen3Block:
    return Qwen3Block(ops, i)
