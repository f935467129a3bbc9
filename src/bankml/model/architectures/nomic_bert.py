"""Nomic BERT: BERT with RoPE in place of learned positions, and SwiGLU."""

from typing import TYPE_CHECKING

from bankml.model.architectures import bert
from bankml.model.keys import MetadataKeys
from bankml.model.shape import HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "nomic-bert"
ROPE_NEOX = True
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS = bert.KEYS

HUGGING_FACE: HuggingFaceMapping | None = None


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    return bert.configure(config, keys)


def outer_tensors(shape: ModelShape) -> LayerTensors:
    outer = bert.outer_tensors(shape)
    norm = {name: extents for name, extents in outer.required.items() if name.startswith("token_embd_norm")}
    return LayerTensors(norm, {"token_types.weight": outer.optional["token_types.weight"]})


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, bert.attention_tensors(shape)
    mlp = {"ffn_gate": (d, ff), "ffn_up": (d, ff), "ffn_down": (ff, d)}
    return LayerTensors({**attention.required, **mlp}, attention.optional)


class NomicBertLayer:
    """x' = norm(x + O attend(rope(Q x), rope(K x), V x)), then x = norm(x' + D (silu(G x') * U x'))."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.qkv, self.rope = ops.qkv(i), ops.rope(i)
        self.attention, self.attn_output = ops.attention(i), ops.linear(i, "attn_output")
        self.attn_norm = ops.layer_norm(i, "attn_output_norm")
        self.mlp = ops.mlp(i)
        self.mlp_norm = ops.layer_norm(i, "layer_output_norm")

    def __call__(self, b: "Buffers", cells: "LayerCells") -> None:
        self.qkv(b.x, b.qkv)
        self.rope(b.rope, b.qkv)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output.add_to(b.attended, b.x)
        self.attn_norm(b.x, b.x)
        self.mlp.add_to(b.x, b.x, b.gate_up, b.gated)
        self.mlp_norm(b.x, b.x)


def layer(ops: "ModelOps", i: int) -> NomicBertLayer:
    return NomicBertLayer(ops, i)
