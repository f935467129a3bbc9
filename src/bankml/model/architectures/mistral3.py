"""Mistral 3: Llama with a temperature of Q that grows with the position, and YaRN with all its parameters."""

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
    Temperature,
    YarnConfig,
)

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "mistral3"
ROPE_NEOX = False
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
_FAST, _SLOW, _MULTIPLIER = (
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_log_multiplier",
)
KEYS = frozenset({"attention.temperature_scale", _FAST, _SLOW, _MULTIPLIER})

HUGGING_FACE: HuggingFaceMapping | None = None


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    scale = keys.number("attention.temperature_scale", 0.0)
    rope = config.rope
    if rope.yarn is not None:
        yarn = YarnConfig(keys.number(_FAST, 32.0), keys.number(_SLOW, 1.0), keys.number(_MULTIPLIER, 0.0))
        rope = replace(rope, yarn=yarn)
    return replace(config, rope=rope, temperature=Temperature(scale, rope.original_context) if scale else None)


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return llama.shared_tensors(shape)


def layer_tensors(shape: ModelShape) -> LayerTensors:
    return llama.layer_tensors(shape)


class TemperedBlock(llama.LlamaBlock):
    """Llama's, with x += O attend(t rope(Q x'), rope(K x'), V x'); t is the temperature of a row's position."""

    def attend(self, b: "Buffers", cells: "LayerCells") -> None:
        self.attn_norm(b.x, b.normed)
        self.qkv(b.normed, b.qkv)
        self.rope(b.rope, b.qkv)
        self.attention.scale_queries(b.qkv, b.temperature)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output.add_to(b.attended, b.x)


def block(ops: "ModelOps", i: int) -> llama.LlamaBlock:
    return llama.LlamaBlock(ops, i) if ops.config.temperature is None else TemperedBlock(ops, i)
