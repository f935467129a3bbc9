"""The records that describe a model: what config.py, the architectures and the forward pass share."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from bankml.errors import UnsupportedModel

Extents = tuple[int, ...]

Pooling = Literal["none", "mean", "cls", "last", "rank"]
"""How the states of an input's tokens become one vector: not at all, their mean, the first, the last; rank: a
classifier's score of the first, or of the last where the model is a decoder."""

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)  # by llama.cpp's numbers


def float32(value: float) -> float:
    """The nearest float32, as a Python float: llama.cpp computes its parameters in float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def inverse_root(n: int) -> float:
    """1 / sqrt(n) in float32 steps."""
    return float32(1 / float32(float(n) ** 0.5))


@dataclass(frozen=True)
class ExpertsShape:
    """A mixture of experts: how many there are, how many a token uses, and the width inside one."""

    count: int
    used: int
    n_ff: int


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """Sizes count values. The GGUF reader and the Hugging Face reader both fill it in."""

    architecture: str
    n_layer: int
    n_embd: int
    n_ff: int
    n_vocab: int
    heads: int
    kv_heads: int
    head_size: int
    tied: bool  # the output matrix is the embedding
    rotated: int  # values of a head that RoPE turns
    experts: ExpertsShape | None = None
    trained_context: int = 0  # tokens
    token_types: int = 0  # of an encoder
    classes: int = 1  # outputs of a classifier, where the model has one

    @property
    def q_width(self) -> int:
        return self.heads * self.head_size

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_size

    @property
    def qkv_width(self) -> int:
        return self.q_width + 2 * self.kv_width


@dataclass(frozen=True)
class YarnConfig:
    """YaRN's mix of scaled and plain angles; the betas count turns. `log_multiplier` 0: none."""

    beta_fast: float = 32.0
    beta_slow: float = 1.0
    log_multiplier: float = 0.0


@dataclass(frozen=True)
class RopeConfig:
    """RoPE's parameters: positions are divided by `factor`, with `yarn` by YaRN's rule. Contexts count tokens."""

    base: float
    factor: float
    original_context: int
    attention_factor: float
    yarn: YarnConfig | None = None


@dataclass(frozen=True)
class WindowConfig:
    """Sliding-window attention: the layers that have it see the last `size` positions, and have a RoPE of their own."""

    size: int
    layers: tuple[bool, ...]
    rope: RopeConfig


@dataclass(frozen=True)
class Temperature:
    """Q is multiplied by log(floor(position / context) + 1) * scale + 1."""

    scale: float
    context: int


@dataclass(frozen=True, kw_only=True)
class ModelConfig(ModelShape):
    """The shape and the hyperparameters of a supported model; `context_length` counts tokens.

    Factors multiply; soft-caps of 0 are none. Q is multiplied by `query_factor` before attention, products of Q and K
    by `attention_scale`.
    """

    context_length: int
    norm_eps: float
    rope: RopeConfig
    attention_scale: float
    query_factor: float = 1.0
    embedding_factor: float = 1.0
    residual_factor: float = 1.0
    logit_factor: float = 1.0
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    temperature: Temperature | None = None
    window: WindowConfig | None = None
    pooling: Pooling | None = None  # None: the header names none
    encoder: bool = False

    def windowed(self, i: int) -> bool:
        """Whether layer i sees a sliding window."""
        return self.window is not None and self.window.layers[i]


@dataclass(frozen=True)
class LayerTensors:
    """The tensors of one layer and their extents, row length first.

    Named without `blk.N.`, weights also without `.weight`; optional ones may be missing.
    """

    required: Mapping[str, Extents]
    optional: Mapping[str, Extents] = field(default_factory=dict)

    def full_names(self, i: int, present: "frozenset[str]") -> dict[str, Extents]:
        """Layer i's tensors: the required ones, and of the optional ones those in `present`.

        A file may have `attn_qkv` in place of `attn_q`, `attn_k` and `attn_v`.
        """
        required = {tensor_name(i, name): extents for name, extents in self.required.items()}
        optional = {tensor_name(i, name): extents for name, extents in self.optional.items()}
        found = required | {name: extents for name, extents in optional.items() if name in present}
        if tensor_name(i, "attn_qkv") in found:
            for name in ("attn_q", "attn_k", "attn_v"):
                found.pop(tensor_name(i, name), None)
        return found


def tensor_name(i: int, name: str) -> str:
    """The name in the file of layer i's tensor `name`, which is without `.weight`."""
    return f"blk.{i}.{name}" + ("" if name.endswith(".bias") else ".weight")


@dataclass(frozen=True)
class HuggingFaceMapping:
    """How an architecture is stored by Hugging Face's libraries.

    `class_names` are the entries of config.json's `architectures`; `layer` maps the names of a layer's tensors, without
    `.weight`, from GGUF to safetensors. `default_head_size` None means hidden_size / num_attention_heads.
    `pairs_rope_rows`: GGUF has the rows of Q and K in adjacent pairs (2i, 2i + 1), safetensors in halves (i, i + n/2).
    `extra_keys` are header keys, without the architecture's prefix, that llama.cpp's converter adds; `factors` such
    keys with the field of config.json that they come from and its default. `head_size_keys`: the head size is written
    "always", where it is "given", or "never". `fields`: values that fields of config.json must have, if they are
    there. `rope_base`: the default of rope_theta. `llama3_rope`: the type `llama3` of rope_scaling is known.
    """

    class_names: tuple[str, ...]
    layer: Mapping[str, str]
    default_head_size: int | None
    kv_heads_required: bool
    pairs_rope_rows: bool
    extra_keys: Callable[[ModelShape], Mapping[str, int]]
    head_size_keys: Literal["always", "given", "never"] = "always"
    factors: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    fields: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    rope_base: float = 10000.0
    llama3_rope: bool = False


def unsupported(reason: str) -> UnsupportedModel:
    """The refusal of a model that the native forward pass does not compute."""
    return UnsupportedModel(f"unsupported model: {reason}")
