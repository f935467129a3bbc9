"""Llama: RoPE on adjacent pairs, SwiGLU, RMS norms before attention and feed-forward.

Llama 2 and 3 (whose factors of RoPE are a tensor), Mistral and Mistral Nemo are files of this architecture.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "llama"
ROPE_NEOX = False
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
# The reference has no sliding window here: Mistral 7B sees all positions.
KEYS = frozenset({"attention.sliding_window"})

HUGGING_FACE = HuggingFaceMapping(
    class_names=("LlamaForCausalLM", "MistralForCausalLM"),
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
    llama3_rope=True,
)


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    """Llama has no keys of its own."""
    keys.count("attention.sliding_window", 0, least=0)
    return config


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return {"rope_freqs.weight": (shape.rotated // 2,)}


def attention_tensors(shape: ModelShape) -> LayerTensors:
    """Q, K and V, which may have biases and be one matrix, and the output."""
    d, q, kv = shape.n_embd, shape.q_width, shape.kv_width
    return LayerTensors(
        {"attn_q": (d, q), "attn_k": (d, kv), "attn_v": (d, kv), "attn_output": (q, d)},
        {
            "attn_qkv": (d, shape.qkv_width),
            "attn_qkv.bias": (shape.qkv_width,),
            "attn_q.bias": (q,),
            "attn_k.bias": (kv,),
            "attn_v.bias": (kv,),
        },
    )


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, attention_tensors(shape)
    mlp = {"ffn_gate": (d, ff), "ffn_up": (d, ff), "ffn_down": (ff, d)}
    biases = {"attn_output.bias": (d,), "ffn_gate.bias": (ff,), "ffn_up.bias": (ff,), "ffn_down.bias": (d,)}
    norms = {"attn_norm": (d,), "ffn_norm": (d,)}
    return LayerTensors({**attention.required, **norms, **mlp}, {**attention.optional, **biases})


class LlamaBlock:
    """x += O attend(rope(Q x'), rope(K x'), V x'), then x += D (silu(G x'') * U x''); x', x'' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
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
        self.attn_output.add_to(b.attended, b.x)

    def feed_forward(self, b: "Buffers") -> None:
        self.ffn_norm(b.x, b.normed)
        self.mlp.add_to(b.normed, b.x, b.gate_up, b.gated)


def block(ops: "ModelOps", i: int) -> LlamaBlock:
    return LlamaBlock(ops, i)
