"""Gemma 2: scaled embeddings, norms before and after attention and MLP, GELU, soft-caps, and a sliding window in every
second layer."""

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
    RopeConfig,
    WindowConfig,
    float32,
    inverse_root,
    unsupported,
)

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "gemma2"
ROPE_NEOX = True
PARTIAL_ROPE = True
ROPE_SCALING: tuple[str, ...] = ()
KEYS = frozenset(
    {
        "attention.sliding_window",
        "attention.sliding_window_pattern",
        "attn_logit_softcapping",
        "final_logit_softcapping",
        "rope.freq_base_swa",
    }
)
WINDOW, FULL_EVERY = 4096, 2
LAYERS_OF_27B = 46  # whose scale is by the width of the rows, not of the heads
ATTENTION_CAP, LOGIT_CAP = 50.0, 30.0

HUGGING_FACE: HuggingFaceMapping | None = None


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    if not config.tied:
        raise unsupported("tensor 'output.weight' is not part of the gemma2 architecture")
    rope, size = config.rope, keys.count("attention.sliding_window", WINDOW)
    base = keys.number("rope.freq_base_swa", rope.base, least=1)
    local = RopeConfig(base, rope.factor, rope.original_context, rope.attention_factor, rope.yarn)
    scaled = scaled_queries(config, LAYERS_OF_27B)
    return replace(
        scaled,
        attention_softcap=keys.number("attn_logit_softcapping", ATTENTION_CAP),
        logit_softcap=keys.number("final_logit_softcapping", LOGIT_CAP),
        window=WindowConfig(size, keys.window_layers(FULL_EVERY, config.n_layer), local),
    )


def scaled_queries(config: ModelConfig, layers_of_27b: int) -> ModelConfig:
    """Embeddings by the root of their width, and Q, not its scores, by the inverse root of the head's."""
    head = config.n_embd // config.heads if config.n_layer == layers_of_27b else config.head_size
    if head == 0:
        raise unsupported(f"{config.n_embd} values do not divide among {config.heads} heads")
    return replace(
        config,
        embedding_factor=float32(float(config.n_embd) ** 0.5),
        query_factor=inverse_root(head),
        attention_scale=1.0,
    )


def shared_tensors(shape: ModelShape) -> Mapping[str, Extents]:
    return {}


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, llama.attention_tensors(shape)
    mlp = {"ffn_gate": (d, ff), "ffn_up": (d, ff), "ffn_down": (ff, d)}
    norms = {name: (d,) for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")}
    return LayerTensors({**attention.required, **norms, **mlp}, attention.optional)


class GemmaMlp:
    """x += norm(D (gelu(G x') * U x')); x' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.ffn_norm, self.ffn_post_norm = ops.norm(i, "ffn_norm"), ops.norm(i, "post_ffw_norm")
        self.mlp = ops.gelu_mlp(i)

    def feed_forward(self, b: "Buffers") -> None:
        self.ffn_norm(b.x, b.normed)
        self.mlp(b.normed, b.normed, b.gate_up, b.gated)
        self.ffn_post_norm.add_to(b.normed, b.x)


class Gemma2Block(GemmaMlp):
    """x += norm(O attend(rope(Q x'), rope(K x'), V x')), then the MLP; x' = norm(x)."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        super().__init__(ops, i)
        self.attn_norm, self.attn_post_norm = ops.norm(i, "attn_norm"), ops.norm(i, "post_attention_norm")
        self.qkv = ops.qkv(i)
        self.rope, self.attention = ops.rope(i), ops.attention(i)
        self.attn_output = ops.linear(i, "attn_output")

    def attend(self, b: "Buffers", cells: "LayerCells") -> None:
        self.attn_norm(b.x, b.normed)
        self.qkv(b.normed, b.qkv)
        self.rope(b.rope, b.qkv)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output(b.attended, b.normed)
        self.attn_post_norm.add_to(b.normed, b.x)


def block(ops: "ModelOps", i: int) -> Gemma2Block:
    return Gemma2Block(ops, i)
