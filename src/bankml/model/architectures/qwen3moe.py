"""Qwen3 MoE: Qwen3 with a mixture of experts in place of the MLP."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bankml.model.architectures import qwen3
from bankml.model.keys import MetadataKeys
from bankml.model.shape import (
    ExpertsShape,
    Extents,
    HuggingFaceMapping,
    LayerTensors,
    ModelConfig,
    ModelShape,
    unsupported,
)

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.ops import ModelOps

NAME = "qwen3moe"
ROPE_NEOX = True
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS = frozenset({"expert_count", "expert_used_count"})
MAX_EXPERTS = 512  # llama.cpp's LLAMA_MAX_EXPERTS

HUGGING_FACE: HuggingFaceMapping | None = None


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    count = keys.count("expert_count", most=MAX_EXPERTS)
    used = keys.count("expert_used_count", most=count)
    width = keys.count("expert_feed_forward_length", config.n_ff // used or None)
    return replace(config, experts=ExpertsShape(count, used, width))


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return {}


def layer_tensors(shape: ModelShape) -> LayerTensors:
    experts = shape.experts
    if experts is None:
        raise unsupported("there are no experts")
    d, attention = shape.n_embd, qwen3.attention_tensors(shape)
    inner, outer = (d, experts.n_ff, experts.count), (experts.n_ff, d, experts.count)
    mlp = {"ffn_gate_inp": (d, experts.count), "ffn_gate_exps": inner, "ffn_up_exps": inner, "ffn_down_exps": outer}
    return LayerTensors({**attention.required, "attn_norm": (d,), "ffn_norm": (d,), **mlp}, attention.optional)


class ExpertBlock(qwen3.Qwen3Attention):
    """Qwen3's attention, then x += sum of w_e D_e (silu(G_e x') * U_e x') over the experts e of x' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int, experts: ExpertsShape) -> None:
        super().__init__(ops, i)
        self.ffn_norm = ops.norm(i, "ffn_norm")
        self.mlp = ops.experts(i, experts)

    def feed_forward(self, b: "Buffers") -> None:
        self.ffn_norm(b.x, b.normed)
        self.mlp.add_to(b.normed, b.x, b.router)


def block(ops: "ModelOps", i: int) -> ExpertBlock:
    if ops.config.experts is None:
        raise unsupported("there are no experts")
    return ExpertBlock(ops, i, ops.config.experts)
