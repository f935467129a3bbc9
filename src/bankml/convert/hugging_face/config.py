"""config.json and generation_config.json: the shape of a model, as the keys of a GGUF header and its tensors' names.

The keys are those that llama.cpp b11192's converter writes. Fields that would need an unsupported graph are refused by
name.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bankml.convert.hugging_face import rope_factors
from bankml.convert.hugging_face.fields import JsonConfig, glimpse
from bankml.gguf.values import ValueType
from bankml.gguf.writer import encode_value
from bankml.model.architectures import ARCHITECTURES
from bankml.model.config import expected_tensors
from bankml.model.shape import ModelShape, tensor_name

MAPPINGS = {name: one.HUGGING_FACE for name, one in ARCHITECTURES.items() if one.HUGGING_FACE is not None}
BY_CLASS = {one: name for name, mapping in MAPPINGS.items() for one in mapping.class_names}
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"

# Fields that these architectures do not have and that would need another graph, or that llama.cpp's converter, which
# knows every model's fields, would use in place of theirs; with the values that have no effect.
_FOREIGN: dict[str, tuple[object, ...]] = {
    "is_causal": (True,),
    "num_local_experts": (0,),
    "num_experts": (0,),
    "n_routed_experts": (0,),
    "num_experts_per_tok": (0,),
    "draft_vocab_size": (),
    "text_config": (),
    "llm_config": (),
    "n_layers": (),
    "n_heads": (),
    "n_kv_heads": (),
    "prefix_dense_intermediate_size": (),
    "dense_intermediate_size": (),
    "global_rope_theta": (),
    "rope_global_theta": (),
    "rope_theta_global": (),
    "local_rope_theta": (),
    "rope_local_theta": (),
    "rope_theta_local": (),
    "swa_rope_theta": (),
    "rope_local_base_freq": (),
}

MetadataEntry = tuple[str, bytes]


@dataclass(frozen=True)
class Weight:
    """One tensor to write: its name in the GGUF, its name in the folder, and its shape, rows first.

    `heads`: the rows of so many heads are permuted, 0 for none.
    """

    name: str
    stored: str
    shape: tuple[int, ...]
    heads: int = 0


def read_shape(config: JsonConfig) -> ModelShape:
    """Raises Refused, naming the field, for an unsupported model."""
    names = config.get("architectures")
    known = next((one for name, one in BY_CLASS.items() if names == [name]), None)
    if known is None:
        raise config.refuse("architectures", f"is not one of {', '.join(str([name]) for name in BY_CLASS)}")
    stored = MAPPINGS[known]
    config.only("hidden_act", "silu")
    config.only("attention_bias", False)
    config.only("mlp_bias", False)
    config.only("quantization_config")
    config.only("use_sliding_window", False)
    config.only("partial_rotary_factor", 1, 1.0)
    for field, harmless in (_FOREIGN | dict(stored.fields)).items():
        config.only(field, *harmless)
    layers = config.get("layer_types")
    if layers is not None and (not isinstance(layers, list) or any(one != "full_attention" for one in layers)):
        raise config.refuse("layer_types", "has unsupported layers (supported: full_attention)")
    heads, n_embd = config.count("num_attention_heads", most=1024), config.count("hidden_size", most=1 << 24)
    default = stored.default_head_size or max(n_embd // heads, 1)
    if stored.default_head_size is None and config.get("head_dim") is None and n_embd % heads:
        raise config.refuse("hidden_size", f"of {n_embd} is not a multiple of {heads} heads")
    kv_heads = config.count("num_key_value_heads", None if stored.kv_heads_required else heads, most=1024)
    head_size = config.count("head_dim", default, most=1 << 16)
    if stored.head_size_keys == "never" and head_size * heads != n_embd:
        raise config.refuse("head_dim", f"is {head_size}, not hidden_size / num_attention_heads")
    if head_size % 2:
        raise config.refuse("head_dim", f"is {head_size}, not even")
    tied = config.get("tie_word_embeddings")
    if tied is not None and not isinstance(tied, bool):
        raise config.refuse("tie_word_embeddings", f"is {glimpse(tied)}, not true or false")
    return ModelShape(
        architecture=known,
        n_layer=config.count("num_hidden_layers", most=1024),
        n_embd=n_embd,
        n_ff=config.count("intermediate_size", most=1 << 24),
        n_vocab=config.count("vocab_size", most=1 << 24),
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        tied=bool(tied),
        rotated=head_size,
    )


def model_entries(config: JsonConfig, shape: ModelShape, name: str) -> Iterator[MetadataEntry]:
    """The header's keys except the tokenizer's. Raises Refused for unsupported position encodings."""
    arch = shape.architecture
    yield _text("general.architecture", arch)
    yield _text("general.type", "model")
    yield _text("general.name", name)
    yield _count(f"{arch}.block_count", shape.n_layer)
    yield _count(f"{arch}.context_length", config.count("max_position_embeddings"))
    yield _count(f"{arch}.embedding_length", shape.n_embd)
    yield _count(f"{arch}.feed_forward_length", shape.n_ff)
    yield _count(f"{arch}.attention.head_count", shape.heads)
    yield _count(f"{arch}.attention.head_count_kv", shape.kv_heads)
    mapping = MAPPINGS[arch]
    given = mapping.head_size_keys == "given" and config.get("head_dim") is not None
    if mapping.head_size_keys == "always" or given:
        yield _count(f"{arch}.attention.key_length", shape.head_size)
        yield _count(f"{arch}.attention.value_length", shape.head_size)
    yield _real(f"{arch}.attention.layer_norm_rms_epsilon", config.number("rms_norm_eps"))
    yield from _rope(config, arch)
    yield _count("general.file_type", 1)
    for key, value in mapping.extra_keys(shape).items():
        yield _count(f"{arch}.{key}", value)
    for key, (field, default) in mapping.factors.items():
        yield _real(f"{arch}.{key}", default if config.get(field) is None else config.number(field))
    yield _count("general.quantization_version", 2)


_ROPE_KEYS = {"rope_theta", "rope_type", "type", "factor", "original_max_position_embeddings"}
# YaRN's own parameters: the header's key after rope.scaling., and the values that the graph has. The attention factor
# is YaRN's own too, and may not be set.
_YARN = {
    "beta_fast": ("yarn_beta_fast", (32, 32.0)),
    "beta_slow": ("yarn_beta_slow", (1, 1.0)),
    "extrapolation_factor": ("yarn_ext_factor", (1, 1.0)),
}
_HARMLESS: dict[str, tuple[object, ...]] = {
    **{name: values for name, (_, values) in _YARN.items()},
    "truncate": (True,),
    "partial_rotary_factor": (1, 1.0),
}


@dataclass(frozen=True)
class _RopeScaling:
    """`rope_scaling`, or `rope_parameters`, which has `rope_theta` too: the object, its type, and the base."""

    given: JsonConfig
    kind: str
    base: float


def _scaling(config: JsonConfig, arch: str) -> _RopeScaling:
    """No scaling, linear, YaRN or Llama 3's. Raises Refused for any other."""
    mapping = MAPPINGS[arch]
    key = "rope_parameters" if config.get("rope_parameters") is not None else "rope_scaling"
    if key == "rope_parameters":
        config.only("rope_scaling")
    given = config.object(key) if config.get(key) is not None else JsonConfig(config.name, {})
    kind = given.get("rope_type") or given.get("type") or "default"
    supported = ("linear", "yarn", *([rope_factors.KIND] if mapping.llama3_rope else []))
    if kind not in ("default", "none", *supported):
        raise config.refuse(key, f"has the unsupported type {glimpse(kind)} (supported: {', '.join(supported)})")
    if given.get("type") not in (None, kind):
        raise config.refuse(key, f"has two types, {glimpse(kind)} and {glimpse(given.get('type'))}")
    known = _ROPE_KEYS | (set(rope_factors.FIELDS) if kind == rope_factors.KIND else set())
    for name in given.values:
        if name not in known:
            given.only(name, *_HARMLESS.get(name, ()))
    where = given if given.get("rope_theta") is not None else config
    base = where.number("rope_theta") if where.get("rope_theta") is not None else mapping.rope_base
    return _RopeScaling(given, kind, base)


def extra_tensors(config: JsonConfig, shape: ModelShape) -> dict[str, npt.NDArray[np.float32]]:
    """The GGUF's tensors that the folder does not have, by name; they are its first. Raises Refused."""
    scaling = _scaling(config, shape.architecture)
    if scaling.kind != rope_factors.KIND:
        return {}
    return {"rope_freqs.weight": rope_factors.llama3_factors(scaling.given, scaling.base, shape.head_size)}


def _rope(config: JsonConfig, arch: str) -> Iterator[MetadataEntry]:
    scaling = _scaling(config, arch)
    given, kind = scaling.given, scaling.kind
    yield _real(f"{arch}.rope.freq_base", scaling.base)
    if kind not in ("linear", "yarn"):
        return
    yield _text(f"{arch}.rope.scaling.type", kind)
    yield _real(f"{arch}.rope.scaling.factor", given.number("factor"))
    if kind == "linear":
        return
    original = given.count("original_max_position_embeddings")
    yield _count(f"{arch}.rope.scaling.original_context_length", original)
    for name, (header_key, _) in _YARN.items():
        if given.get(name) is not None:
            yield _real(f"{arch}.rope.scaling.{header_key}", given.number(name))


# generation_config.json's field, the header's key after general.sampling., and its type. Only the first five are known
# to Hugging Face's library; the others are llama.cpp's converter's own.
_SAMPLING = (
    ("top_k", "top_k", ValueType.INT32),
    ("top_p", "top_p", ValueType.FLOAT32),
    ("min_p", "min_p", ValueType.FLOAT32),
    ("temperature", "temp", ValueType.FLOAT32),
    ("repetition_penalty", "penalty_repeat", ValueType.FLOAT32),
    ("sequence", "sequence", ValueType.STRING),
    ("xtc_probability", "xtc_probability", ValueType.FLOAT32),
    ("xtc_threshold", "xtc_threshold", ValueType.FLOAT32),
    ("penalty_last_n", "penalty_last_n", ValueType.INT32),
    ("penalty_repeat", "penalty_repeat", ValueType.FLOAT32),
    ("mirostat", "mirostat", ValueType.INT32),
    ("mirostat_tau", "mirostat_tau", ValueType.FLOAT32),
    ("mirostat_eta", "mirostat_eta", ValueType.FLOAT32),
)


def sampling_entries(generation: JsonConfig) -> Iterator[MetadataEntry]:
    """The model's recommended sampling parameters: the defaults of a request. Raises Refused."""
    for field, key, kind in _SAMPLING:
        if field == "repetition_penalty" and "penalty_repeat" in generation.values:
            continue  # the other name takes precedence, even as null
        if generation.get(field) is not None:
            yield f"general.sampling.{key}", encode_value(kind, _setting(generation, field, kind))


def _setting(generation: JsonConfig, field: str, kind: ValueType) -> str | int | float:
    if kind is ValueType.STRING:
        return generation.text(field)
    value = generation.get(field)
    integral = kind is ValueType.INT32
    if isinstance(value, bool) or not isinstance(value, int if integral else int | float) or not -1e30 < value < 1e30:
        raise generation.refuse(field, f"is {glimpse(value)}, not a {'whole ' if integral else ''}number")
    if integral and not -(2**31) <= value < 2**31:
        raise generation.refuse(field, f"is {glimpse(value)}, not a 32-bit number")
    return value


def weights(shape: ModelShape) -> list[Weight]:
    """Every tensor of the GGUF, in its order."""
    mapping = MAPPINGS[shape.architecture]
    rope_heads = {"attn_q": shape.heads, "attn_k": shape.kv_heads} if mapping.pairs_rope_rows else {}
    layers = [tensor_name(i, name) for i in range(shape.n_layer) for name in mapping.layer]
    expected = expected_tensors(shape, layers)
    found = [Weight("token_embd.weight", EMBEDDING, expected["token_embd.weight"][::-1])]
    for i in range(shape.n_layer):
        for name, stored in mapping.layer.items():
            to = tensor_name(i, name)
            kind = "bias" if name.endswith(".bias") else "weight"
            found.append(Weight(to, f"model.layers.{i}.{stored}.{kind}", expected[to][::-1], rope_heads.get(name, 0)))
    found.append(Weight("output_norm.weight", "model.norm.weight", expected["output_norm.weight"]))
    if not shape.tied:
        found.append(Weight("output.weight", HEAD, expected["output.weight"][::-1]))
    return found


def _text(key: str, value: str) -> MetadataEntry:
    return key, encode_value(ValueType.STRING, value)


def _count(key: str, value: int) -> MetadataEntry:
    return key, encode_value(ValueType.UINT32, value)


def _real(key: str, value: float) -> MetadataEntry:
    return key, encode_value(ValueType.FLOAT32, value)
