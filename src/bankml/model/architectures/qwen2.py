"""Qwen2: Llama with biases on Q, K and V, and RoPE on the halves of a head."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bankml.model.architectures import llama
from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.ops import ModelOps

NAME = "qwen2"
ROPE_NEOX = True
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS: frozenset[str] = frozenset()

HUGGING_FACE = HuggingFaceMapping(
    class_names=("Qwen2ForCausalLM",),
    layer={
        **llama.HUGGING_FACE.layer,
        "attn_q.bias": "self_attn.q_proj",
        "attn_k.bias": "self_attn.k_proj",
        "attn_v.bias": "self_attn.v_proj",
    },
    default_head_size=None,
    kv_heads_required=True,
    pairs_rope_rows=False,
    extra_keys=lambda shape: {},
    head_size_keys="given",
)


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    """Qwen2 has no keys of its own."""
    return config


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return {"output.bias": (shape.n_vocab,)}


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, llama.attention_tensors(shape)
    mlp = {"ffn_gate": (d, ff), "ffn_up": (d, ff), "ffn_down": (ff, d)}
    return LayerTensors({**attention.required, "attn_norm": (d,), "ffn_norm": (d,), **mlp}, attention.optional)


def block(ops: "ModelOps", i: int) -> llama.LlamaBlock:
    """Llama's: the biases are in the operations."""
    return llama.LlamaBlock(ops, i)
