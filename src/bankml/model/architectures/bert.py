"""BERT: learned positions, layer norms after attention and after the MLP, GELU, biases."""

from typing import TYPE_CHECKING

from bankml.model.keys import MetadataKeys
from bankml.model.shape import Extents, HuggingFaceMapping, LayerTensors, ModelConfig, ModelShape, unsupported

if TYPE_CHECKING:  # numpy: what only reads a header does without it
    from bankml.model.buffers import Buffers
    from bankml.model.kv_cache import LayerCells
    from bankml.model.ops import ModelOps

NAME = "bert"
ROPE_NEOX = False  # there is none
PARTIAL_ROPE = False
ROPE_SCALING: tuple[str, ...] = ()
KEYS = frozenset({"attention.causal"})

HUGGING_FACE: HuggingFaceMapping | None = None


def configure(config: ModelConfig, keys: MetadataKeys) -> ModelConfig:
    if config.kv_heads != config.heads or config.q_width != config.n_embd:
        raise unsupported(f"the heads of {config.architecture} are not as wide as its states")
    if keys.flag("attention.causal", True):
        raise unsupported(f"{config.architecture}.attention.causal is true")
    return config


def outer_tensors(shape: ModelShape) -> LayerTensors:
    d = shape.n_embd
    norm: dict[str, Extents] = {"token_embd_norm.weight": (d,), "token_embd_norm.bias": (d,)}
    classifier: dict[str, Extents] = {
        "cls.weight": (d, d),
        "cls.bias": (d,),
        "cls.output.weight": (d, shape.classes),
        "cls.output.bias": (shape.classes,),
    }
    types: dict[str, Extents] = {"token_types.weight": (d, shape.token_types)}
    return LayerTensors({**norm, "position_embd.weight": (d, shape.trained_context)}, {**types, **classifier})


def attention_tensors(shape: ModelShape) -> LayerTensors:
    """Attention's, which may have biases and Q, K and V in one matrix, and both norms."""
    d = shape.n_embd
    matrices = {name: (d, d) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    norms = {f"{name}_output_norm{part}": (d,) for name in ("attn", "layer") for part in ("", ".bias")}
    biases = {f"attn_{name}.bias": (d,) for name in ("q", "k", "v", "output")}
    return LayerTensors({**matrices, **norms}, {**biases, "attn_qkv": (d, 3 * d), "attn_qkv.bias": (3 * d,)})


def layer_tensors(shape: ModelShape) -> LayerTensors:
    d, ff, attention = shape.n_embd, shape.n_ff, attention_tensors(shape)
    biases = {"ffn_up.bias": (ff,), "ffn_down.bias": (d,)}
    return LayerTensors(
        {**attention.required, "ffn_up": (d, ff), "ffn_down": (ff, d)}, {**attention.optional, **biases}
    )


class BertLayer:
    """x' = norm(x + O attend(Q x, K x, V x)), then x = norm(x' + D gelu(U x'))."""

    def __init__(self, ops: "ModelOps", i: int) -> None:
        self.qkv = ops.qkv(i)
        self.attention, self.attn_output = ops.attention(i), ops.linear(i, "attn_output")
        self.attn_norm = ops.layer_norm(i, "attn_output_norm")
        self.mlp = ops.plain_mlp(i)
        self.mlp_norm = ops.layer_norm(i, "layer_output_norm")

    def __call__(self, b: "Buffers", cells: "LayerCells") -> None:
        self.qkv(b.x, b.qkv)
        self.attention(b.qkv, cells, b.attended)
        self.attn_output.add_to(b.attended, b.x)
        self.attn_norm(b.x, b.x)
        self.mlp.add_to(b.x, b.x, b.gated)
        self.mlp_norm(b.x, b.x)


def layer(ops: "ModelOps", i: int) -> BertLayer:
    return BertLayer(ops, i)
