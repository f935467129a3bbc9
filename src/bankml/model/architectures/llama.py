"""Llama: RoPE on adjacent pairs, SwiGLU, RMS norms before attention and feed-forward."""

from typing import TYPE_CHECKING

from bankml.model.shape import HuggingFaceMapping, MetadataKeys, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.ops import ModelOps

NAME = "llama"
ROPE_NEOX = False

HUGGING_FACE = HuggingFaceMapping(
    class_name="LlamaForCausalLM",
    layer={
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    },
    default_head_size=None,
    kv_heads_required=False,
    pairs_rope_rows=True,
    extra_keys=lambda shape: {"vocab_size": shape.n_vocab, "rope.dimension_count": shape.head_size},
)


def check_keys(keys: MetadataKeys) -> None:
    """Llama has no keys of its own."""


def layer_tensors(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    d, q, kv = shape.n_embd, shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    return {
        "attn_norm": (d,),
        "attn_q": (d, q),
        "attn_k": (d, kv),
        "attn_v": (d, kv),
        "attn_output": (q, d),
        "ffn_norm": (d,),
        "ffn_gate": (d, shape.n_ff),
        "ffn_up": (d, shape.n_ff),
        "ffn_down": (shape.n_ff, d),
    }


class LlamaBlock:
    """x += O attend(rope(Q x'), rope(K x'), V x'), then x += D (silu(G x'') * U x''); x', x'' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.attn_norm = ops.norm(f"blk.{i}.attn_norm")
        self.qkv = ops.linear(f"blk.{i}.attn_q", f"blk.{i}.attn_k", f"blk.{i}.attn_v")
        self.rope, self.attention = ops.rope, ops.attention(i)
        self.attn_output = ops.linear(f"blk.{i}.attn_output")
        self.ffn_norm = ops.norm(f"blk.{i}.ffn_norm")
        self.mlp = ops.mlp(f"blk.{i}.ffn_gate", f"blk.{i}.ffn_up", f"blk.{i}.ffn_down")

    def attend(self, b: "Buffers") -> None:
        self.attn_norm(b.x, b.normed)
        self.qkv(b.normed, b.qkv)
        self.rope(b.rope, b.qkv)
        self.attention(b.qkv, b.attended)
        self.attn_output.add_to(b.attended, b.x)

    def feed_forward(self, b: "Buffers") -> None:
        self.ffn_norm(b.x, b.normed)
        self.mlp.add_to(b.normed, b.x, b.gate_up, b.gated)


def block(ops: "ModelOps", i: int) -> LlamaBlock:
    return LlamaBlock(ops, i)
