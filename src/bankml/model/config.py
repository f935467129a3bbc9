"""Which models the native forward pass computes, decided from the header alone, before a weight is read.

The keys that all architectures share are read here; the rest stands in the architecture's own module. Whatever a header
asks for beyond that is refused with the key or tensor named: an answer has the reference's bits or it is not given.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bankml import _native
from bankml.errors import UnsupportedModel
from bankml.gguf.block_types import F32
from bankml.gguf.header import Header, TensorInfo
from bankml.gguf.values import shown, shown_value
from bankml.model.architectures import ARCHITECTURES, DESCRIBED, ENCODERS
from bankml.model.keys import MetadataKeys
from bankml.model.shape import (
    POOLINGS,
    Extents,
    LayerTensors,
    ModelConfig,
    ModelShape,
    Pooling,
    RopeConfig,
    YarnConfig,
    inverse_root,
    unsupported,
)

__all__ = ["ModelConfig", "expected_tensors", "read_config", "unsupported"]

MAX_HEAD_SIZE = 256


def read_config(header: Header) -> ModelConfig:
    """The configuration of the model that `header` describes. Raises Refused, naming the key or the tensor."""
    tensors = {t.name: t for t in header.tensors}
    config = configured(header.metadata, {name: t.shape for name, t in tensors.items()})
    _check_vocabulary(header.metadata.get("tokenizer.ggml.tokens"), tensors["token_embd.weight"])
    _check_weight_types(header)
    _check_tensors(config, header)
    return config


def configured(metadata: Mapping[str, Any], tensors: Mapping[str, Extents]) -> ModelConfig:
    """What the metadata says of a model with tensors of these names and extents. Raises Refused, naming the key."""
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in DESCRIBED:
        raise unsupported(f"general.architecture is {shown_value(name)}")
    if metadata.get("general.type", "model") != "model":
        raise unsupported(f"general.type is {shown_value(metadata['general.type'])}")
    if metadata.get("split.count", 1) not in (0, 1):
        raise unsupported(f"split.count is {shown_value(metadata['split.count'])}: it is one part of a model")
    if "token_embd.weight" not in tensors:
        raise unsupported("tensor 'token_embd.weight' is missing")
    keys, architecture = MetadataKeys(metadata, name), DESCRIBED[name]
    for key, harmless in _UNIMPLEMENTED_KEYS.items():
        if key not in architecture.KEYS:
            keys.require_default(key, *harmless)
    types = MetadataKeys(metadata, "tokenizer.ggml").count("token_type_count") if name in ENCODERS else 0
    return architecture.configure(replace(_config(keys, name, tensors), token_types=types), keys)


# Keys that change the forward pass of some architecture in llama.cpp, with the values under which they do not. An
# architecture that implements one has it in its KEYS.
_UNIMPLEMENTED_KEYS: dict[str, tuple[object, ...]] = {
    "attention.sliding_window": (0,),
    "attention.sliding_window_pattern": (),
    "attention.temperature_scale": (0.0,),
    "attention.scale": (0.0,),
    "attention.key_length_swa": (),
    "attention.value_length_swa": (),
    "rope.dimension_count_swa": (),
    "rope.freq_base_swa": (),
    "embedding_scale": (0.0, 1.0),
    "residual_scale": (0.0, 1.0),
    "logit_scale": (0.0, 1.0),
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attn_logit_softcapping": (0.0,),
    "final_logit_softcapping": (0.0,),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "expert_group_count": (0,),
    "expert_group_used_count": (0,),
    "expert_shared_count": (0,),
    "expert_shared_feed_forward_length": (0,),
    "expert_weights_scale": (0.0, 1.0),
    "expert_gating_func": (0, 1),
    "swiglu_clamp_exp": (),
    "swiglu_clamp_shexp": (),
    "leading_dense_block_count": (0,),
    "deepstack_mapping": (),
    "rope.scaling.alpha": (0.0,),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "rope.scaling.yarn_ext_factor": (1.0,),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.yarn_beta_fast": (32.0,),
    "rope.scaling.yarn_beta_slow": (1.0,),
    "nextn_predict_layers": (0,),
    "embedding_length_out": (0,),
}


def _check_vocabulary(tokens: Any, embedding: TensorInfo) -> None:
    """Every row of the embedding is a token's; the tokens themselves are checked by the tokenizer."""
    if isinstance(tokens, Sequence) and len(embedding.shape) == 2 and len(tokens) != embedding.shape[1]:
        raise unsupported(
            f"tokenizer.ggml.tokens has {len(tokens)} tokens, token_embd.weight {embedding.shape[1]} rows"
        )


def _config(keys: MetadataKeys, architecture: str, tensors: Mapping[str, Extents]) -> ModelConfig:
    heads = keys.count("attention.head_count", most=1024)
    n_embd = keys.count("embedding_length")
    kv_heads = keys.count("attention.head_count_kv", heads, most=1024)
    head_size = _head_size(keys, n_embd, heads)
    rotated = keys.count("rope.dimension_count", head_size, most=head_size)
    if rotated != head_size and not DESCRIBED[architecture].PARTIAL_ROPE:
        raise unsupported("rope.dimension_count differs from the head size")
    if rotated % 2:
        raise unsupported(f"rope.dimension_count is {rotated}, not even")
    if heads % kv_heads:
        raise unsupported(f"{heads} heads do not share {kv_heads} K/V heads evenly")
    embedding = tensors["token_embd.weight"]
    if len(embedding) != 2 or embedding[0] != n_embd:
        raise unsupported(f"tensor 'token_embd.weight' has shape {list(embedding)}")
    context, encoder = keys.count("context_length", most=1 << 31), architecture in ENCODERS
    return ModelConfig(
        architecture=architecture,
        n_layer=keys.count("block_count", most=1024),
        n_embd=n_embd,
        n_ff=_mlp_width(keys),
        n_vocab=embedding[1],
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        tied="output.weight" not in tensors,
        rotated=rotated,
        attention_scale=inverse_root(head_size),
        context_length=context,
        norm_eps=keys.number(f"attention.layer_norm_{'' if encoder else 'rms_'}epsilon"),
        rope=_rope(keys, architecture, context),
        trained_context=context,
        classes=keys.strings("classifier.output_labels") or 1,
        pooling=_pooling(keys),
        encoder=encoder,
    )


def _pooling(keys: MetadataKeys) -> Pooling | None:
    """llama.cpp takes 0, which is `none`, for a model that names none."""
    return (
        POOLINGS[keys.count("pooling_type", 0, least=0, most=len(POOLINGS) - 1)]
        if keys.present("pooling_type")
        else None
    )


def _mlp_width(keys: MetadataKeys) -> int:
    """0 where every MLP is an expert's, and the key is missing."""
    experts = keys.present("expert_count") and not keys.present("feed_forward_length")
    return 0 if experts else keys.count("feed_forward_length")


def _head_size(keys: MetadataKeys, n_embd: int, heads: int) -> int:
    if not keys.present("attention.key_length") and n_embd % heads:
        raise unsupported(f"{n_embd} values do not divide among {heads} heads")
    head_size = keys.count("attention.key_length", n_embd // heads)
    if keys.count("attention.value_length", n_embd // heads) != head_size:
        raise unsupported("attention.value_length differs from attention.key_length")
    if head_size % 8 or head_size > MAX_HEAD_SIZE:
        raise unsupported(f"the head size is {head_size}, not a multiple of 8 up to {MAX_HEAD_SIZE}")
    return head_size


def _rope(keys: MetadataKeys, architecture: str, context: int) -> RopeConfig:
    scaling = keys.text("rope.scaling.type", "linear")
    if scaling not in ("none", "linear", "yarn", *DESCRIBED[architecture].ROPE_SCALING):
        raise unsupported(f"{architecture}.rope.scaling.type is {shown_value(scaling)}")
    named = "rope.scaling.factor" if keys.present("rope.scaling.factor") else "rope.scale_linear"
    factor = keys.number(named, 0.0) or 1.0
    return RopeConfig(
        base=keys.number("rope.freq_base", 10000.0, least=1),
        factor=1.0 if scaling == "none" else factor,
        original_context=keys.count("rope.scaling.original_context_length", context, most=(1 << 31) - 1),
        attention_factor=keys.number("rope.scaling.attn_factor", 1.0),
        yarn=YarnConfig() if scaling == "yarn" else None,
    )


def expected_tensors(shape: ModelShape, present: Collection[str] = ()) -> dict[str, Extents]:
    """Every tensor of a file of this shape, with its extents (row length first); optional ones if in `present`."""
    names = frozenset(present)
    outer = _outer_tensors(shape)
    expected = {**outer.required, **{name: extents for name, extents in outer.optional.items() if name in names}}
    layer = DESCRIBED[shape.architecture].layer_tensors(shape)
    for i in range(shape.n_layer):
        expected |= layer.full_names(i, names)
    return expected


def _outer_tensors(shape: ModelShape) -> LayerTensors:
    """Those that belong to no layer, by their full names."""
    d = shape.n_embd
    embedding: dict[str, Extents] = {"token_embd.weight": (d, shape.n_vocab)}
    if shape.architecture in ENCODERS:
        outer = ENCODERS[shape.architecture].outer_tensors(shape)
        return LayerTensors({**embedding, **outer.required}, outer.optional)
    output: dict[str, Extents] = {} if shape.tied else {"output.weight": (d, shape.n_vocab)}
    shared = ARCHITECTURES[shape.architecture].shared_tensors(shape)
    return LayerTensors({**embedding, "output_norm.weight": (d,), **output}, shared)


def computed_tensors(header: Header) -> tuple[dict[str, int], dict[str, str]]:
    """How many tensors of each type the native code computes with; the names of the others, with their types."""
    supported = {one.id for one in _native.weight_formats()}
    computed = Counter(t.type.name for t in header.tensors if t.type.id in supported)
    return dict(computed), {t.name: t.type.name for t in header.tensors if t.type.id not in supported}


def _check_weight_types(header: Header) -> None:
    """Every matrix has a type that the native code computes with; each may have another."""
    supported = {one.id: one.name for one in _native.weight_formats()}
    used = {t.type.id: t.type.name for t in header.tensors if len(t.shape) > 1}
    odd = sorted(name for number, name in used.items() if number not in supported)
    if odd:
        types = f"type{'s' if len(odd) > 1 else ''} {' and '.join(odd)}"
        raise UnsupportedModel(f"unsupported weight {types} (supported: {', '.join(supported.values())})")


def _check_tensors(config: ModelConfig, header: Header) -> None:
    expected = expected_tensors(config, [tensor.name for tensor in header.tensors])
    multiples = {one.id: one.row_multiple for one in _native.weight_formats()}
    for tensor in header.tensors:
        extents = expected.pop(tensor.name, None)
        if extents is None:
            raise unsupported(f"tensor {shown(tensor.name)} is not part of the {config.architecture} architecture")
        if tensor.shape != extents:
            raise unsupported(f"tensor {shown(tensor.name)} has shape {list(tensor.shape)}, not {list(extents)}")
        if len(extents) == 1 and tensor.type is not F32:
            raise unsupported(f"tensor {shown(tensor.name)} is {tensor.type.name}, not F32")
        if len(extents) > 1 and extents[0] % multiples[tensor.type.id]:
            raise unsupported(f"tensor {shown(tensor.name)} has rows of {extents[0]} weights, not whole blocks")
    if expected:
        raise unsupported(f"tensor {next(iter(expected))!r} is missing")
