"""What the native forward pass plays, judged from the header alone, before a weight is read.

Qwen3 and Llama, every matrix in one type (Q1_0, Q2_0 or F16), norms in F32, embeddings tied or not. Whatever a header
asks for beyond that is refused with the key or tensor named: an answer is the reference's bits or it is not given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bankml.errors import Refused
from bankml.gguf.block_types import BLOCK_TYPES
from bankml.gguf.header import Header, TensorInfo
from bankml.gguf.values import shown, shown_value

ARCHITECTURES = ("llama", "qwen3")
PLAYED_TYPES = {1: "F16", 41: "Q1_0", 42: "Q2_0"}
F32 = 0
MAX_HEAD_SIZE = 256


@dataclass(frozen=True)
class Rope:
    """How positions turn Q and K. `yarn_factor` None means no scaling."""

    base: float
    neox: bool
    yarn_factor: float | None
    original_context: int
    attention_factor: float


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a model that is played. Sizes count values; `context_length` counts tokens."""

    architecture: str
    weight_type: int
    n_layer: int
    n_embd: int
    n_ff: int
    n_vocab: int
    heads: int
    kv_heads: int
    head_size: int
    context_length: int
    rms_eps: float
    rope: Rope
    tied: bool

    @property
    def qkv_width(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_size


def unsupported(reason: str) -> Refused:
    return Refused(f"bankML's native forward pass does not play it: {reason}")


class _Keys:
    """The metadata of one architecture, read with the types and ranges the graph needs."""

    def __init__(self, metadata: Mapping[str, Any], architecture: str) -> None:
        self._metadata = metadata
        self._prefix = architecture + "."

    def given(self, key: str) -> bool:
        return self._prefix + key in self._metadata

    def count(self, key: str, default: int | None = None, least: int = 1, most: int = 1 << 24) -> int:
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise unsupported(f"{self._prefix}{key} is missing")
        if isinstance(value, bool) or not isinstance(value, int):
            raise unsupported(f"{self._prefix}{key} is not one whole number")
        if not least <= value <= most:
            raise unsupported(f"{self._prefix}{key} is {value}, outside {least} to {most}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise unsupported(f"{self._prefix}{key} is missing")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
            raise unsupported(f"{self._prefix}{key} is not a positive number")
        return float(value)

    def refuse_if(self, key: str, *harmless: object) -> None:
        """Refuses a key the graph knows nothing of, unless its value changes nothing."""
        value = self._metadata.get(self._prefix + key)
        if value is not None and value not in harmless:
            raise unsupported(f"{self._prefix}{key} is {shown_value(value)}")


def read_config(header: Header) -> ModelConfig:
    """The plan of the model that `header` describes. Raises Refused, naming the key or the tensor."""
    metadata = header.metadata
    architecture = metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise unsupported(f"general.architecture is {shown_value(architecture)}")
    if metadata.get("general.type", "model") != "model":
        raise unsupported(f"general.type is {shown_value(metadata['general.type'])}")
    if metadata.get("split.count", 1) not in (0, 1):
        raise unsupported(f"split.count is {shown_value(metadata['split.count'])}: it is one part of a model")
    tensors = _tensors(header)
    _check_vocabulary(metadata.get("tokenizer.ggml.tokens"), tensors["token_embd.weight"])
    keys = _Keys(metadata, str(architecture))
    for key, harmless in _FOREIGN_KEYS.items():
        keys.refuse_if(key, *harmless)
    shape = _shape(keys, str(architecture), tensors)
    _check_tensors(shape, header)
    return shape


# Keys that change the graph in llama.cpp, with the values under which they do not.
_FOREIGN_KEYS: dict[str, tuple[object, ...]] = {
    "attention.sliding_window": (0,),
    "attention.sliding_window_pattern": (),
    "attention.scale": (0.0,),
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attn_logit_softcapping": (0.0,),
    "final_logit_softcapping": (0.0,),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "leading_dense_block_count": (0,),
    "rope.scaling.alpha": (0.0,),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "rope.scaling.yarn_ext_factor": (1.0,),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.yarn_beta_fast": (32.0,),
    "rope.scaling.yarn_beta_slow": (1.0,),
    "nextn_predict_layers": (0,),
    "pooling_type": (0,),
}


def _tensors(header: Header) -> dict[str, TensorInfo]:
    tensors = {t.name: t for t in header.tensors}
    if "token_embd.weight" not in tensors:
        raise unsupported("tensor 'token_embd.weight' is missing")
    return tensors


def _check_vocabulary(tokens: Any, embedding: TensorInfo) -> None:
    """Every row of the embedding is a token's; the tokens themselves are the text room's to judge."""
    if isinstance(tokens, Sequence) and len(embedding.shape) == 2 and len(tokens) != embedding.shape[1]:
        raise unsupported(
            f"tokenizer.ggml.tokens has {len(tokens)} tokens, token_embd.weight {embedding.shape[1]} rows"
        )


def _shape(keys: _Keys, architecture: str, tensors: Mapping[str, TensorInfo]) -> ModelConfig:
    heads = keys.count("attention.head_count", most=1024)
    n_embd = keys.count("embedding_length")
    kv_heads = keys.count("attention.head_count_kv", heads, most=1024)
    if not keys.given("attention.key_length") and n_embd % heads:
        raise unsupported(f"{n_embd} values do not divide among {heads} heads")
    head_size = keys.count("attention.key_length", n_embd // heads)
    if keys.count("attention.value_length", n_embd // heads) != head_size:
        raise unsupported("attention.value_length differs from attention.key_length")
    if keys.count("rope.dimension_count", head_size) != head_size:
        raise unsupported("rope.dimension_count differs from the head size")
    if heads % kv_heads:
        raise unsupported(f"{heads} heads do not share {kv_heads} K/V heads evenly")
    if head_size % 8 or head_size > MAX_HEAD_SIZE:
        raise unsupported(f"the head size is {head_size}, not a multiple of 8 up to {MAX_HEAD_SIZE}")
    embedding = tensors["token_embd.weight"]
    if len(embedding.shape) != 2 or embedding.shape[0] != n_embd:
        raise unsupported(f"tensor 'token_embd.weight' has shape {list(embedding.shape)}")
    context = keys.count("context_length", most=1 << 31)
    return ModelConfig(
        architecture=architecture,
        weight_type=_weight_type(tensors),
        n_layer=keys.count("block_count", most=1024),
        n_embd=n_embd,
        n_ff=keys.count("feed_forward_length"),
        n_vocab=embedding.shape[1],
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        context_length=context,
        rms_eps=keys.number("attention.layer_norm_rms_epsilon"),
        rope=_rope(keys, architecture, context),
        tied="output.weight" not in tensors,
    )


def _rope(keys: _Keys, architecture: str, context: int) -> Rope:
    scaling = keys._metadata.get(f"{architecture}.rope.scaling.type", "linear")
    factor = None
    if keys.given("rope.scaling.factor"):
        factor = keys.number("rope.scaling.factor")
    elif keys.given("rope.scale_linear"):
        factor = keys.number("rope.scale_linear")
    if scaling == "none" or (scaling == "linear" and factor in (None, 1.0)):
        factor = None
    elif scaling != "yarn":
        raise unsupported(f"{architecture}.rope.scaling.type is {shown_value(scaling)}")
    elif factor is None:
        factor = 1.0
    base = keys.number("rope.freq_base", 10000.0)
    if base < 1:
        raise unsupported(f"{architecture}.rope.freq_base is {base}, below 1")
    return Rope(
        base=base,
        neox=architecture == "qwen3",
        yarn_factor=factor,
        original_context=keys.count("rope.scaling.original_context_length", context, most=(1 << 31) - 1),
        attention_factor=keys.number("rope.scaling.attn_factor", 1.0),
    )


def _weight_type(tensors: Mapping[str, TensorInfo]) -> int:
    types = {t.type.id for t in tensors.values() if len(t.shape) > 1}
    if len(types) == 1 and next(iter(types)) in PLAYED_TYPES:
        return next(iter(types))
    # The embedding may be of a type of its own; name what the bulk of the weights is, and what else there is.
    names = sorted(BLOCK_TYPES[t].name if t in BLOCK_TYPES else f"type {t}" for t in types)
    raise unsupported(f"weights are {' and '.join(names)}")


def expected_tensors(shape: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor a file of this plan holds, with its shape (row length first)."""
    d, head = shape.n_embd, shape.head_size
    expected: dict[str, tuple[int, ...]] = {"token_embd.weight": (d, shape.n_vocab), "output_norm.weight": (d,)}
    if not shape.tied:
        expected["output.weight"] = (d, shape.n_vocab)
    for i in range(shape.n_layer):
        layer = {
            "attn_norm": (d,),
            "attn_q": (d, shape.heads * head),
            "attn_k": (d, shape.kv_heads * head),
            "attn_v": (d, shape.kv_heads * head),
            "attn_output": (shape.heads * head, d),
            "ffn_norm": (d,),
            "ffn_gate": (d, shape.n_ff),
            "ffn_up": (d, shape.n_ff),
            "ffn_down": (shape.n_ff, d),
        }
        if shape.architecture == "qwen3":
            layer |= {"attn_q_norm": (head,), "attn_k_norm": (head,)}
        expected |= {f"blk.{i}.{name}.weight": extents for name, extents in layer.items()}
    return expected


def _check_tensors(shape: ModelConfig, header: Header) -> None:
    expected = expected_tensors(shape)
    for tensor in header.tensors:
        extents = expected.pop(tensor.name, None)
        if extents is None:
            raise unsupported(f"tensor {shown(tensor.name)} is not part of the {shape.architecture} graph")
        if tensor.shape != extents:
            raise unsupported(f"tensor {shown(tensor.name)} has shape {list(tensor.shape)}, not {list(extents)}")
        if len(extents) == 1 and tensor.type.id != F32:
            raise unsupported(f"tensor {shown(tensor.name)} is {tensor.type.name}, not F32")
        if len(extents) == 2 and extents[0] % tensor.type.weights:
            raise unsupported(f"tensor {shown(tensor.name)} has rows of {extents[0]} weights, not whole blocks")
    if expected:
        raise unsupported(f"tensor {next(iter(expected))!r} is missing")
