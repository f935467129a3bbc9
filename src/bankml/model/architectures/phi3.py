"""Phi-3 and 4: Llama with Q, K and V in one matrix, gate and up in another, and RoPE by one of two sets of factors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bankml.model.architectures import llama
from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.ops import ModelOps

NAME = "phi3"
ROPE_NEOX = True
PARTIAL_ROPE = True
ROPE_SCALING = ("longrope",)
KEYS = frozenset({"attention.sliding_window"})  # which the reference reads and then sets to none

HUGGING_FACE: HuggingFaceMapping | None = None


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    """Q is scaled before attention, not its scores."""
    keys.count("attention.sliding_window", 0, least=0)
    return replace(config, query_factor=config.attention_scale, attention_scale=1.0)


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    factors = (shape.rotated // 2,)
    return {"rope_factors_long.weight": factors, "rope_factors_short.weight": factors}


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, llama.attention_tensors(shape)
    rest = {"attn_norm": (d,), "ffn_norm": (d,), "ffn_up": (d, 2 * ff), "ffn_down": (ff, d)}
    return LayerTensors({**attention.required, **rest}, attention.optional)


def block(ops: "ModelOps", i: int) -> llama.LlamaBlock:
    """Llama's: what is fused, and Q's factor, are in the operations."""
    return llama.LlamaBlock(ops, i)
