"""Small models of every supported architecture: random weights, the tokens of tests.tiny_model."""

import numpy as np

from bankml.gate.verify import record, verify
from bankml.gguf.block_types import F16, F32
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_array, encode_value, writing
from bankml.model.architectures import ARCHITECTURES
from bankml.model.config import configured, expected_tensors
from tests.tiny_model import N_VOCAB, TEMPLATE, vocabulary_entries

N_EMBD, N_FF, HEADS, KV_HEADS, HEAD_SIZE = 128, 96, 2, 1, 64
CONTEXT = 1024

BASE = {
    "context_length": 4096,
    "embedding_length": N_EMBD,
    "feed_forward_length": N_FF,
    "attention.head_count": HEADS,
    "attention.head_count_kv": KV_HEADS,
    "attention.key_length": HEAD_SIZE,
    "attention.value_length": HEAD_SIZE,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 10000.0,
}
LINEAR = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 256}
MISTRAL3 = YARN | {
    "rope.scaling.yarn_beta_fast": 24.0,
    "rope.scaling.yarn_beta_slow": 2.0,
    "rope.scaling.yarn_log_multiplier": 0.75,
    "attention.temperature_scale": 0.1,
}
PHI3 = {"rope.dimension_count": 48, "rope.scaling.attn_factor": 1.19, "attention.sliding_window": 262144}
GRANITE = {"embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 8.0, "attention.scale": 0.1}
WINDOW = {"attention.sliding_window": 64}
GEMMA2 = WINDOW | {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 20.0}
GEMMA3 = WINDOW | LINEAR | {"rope.freq_base": 1e6}
QKV_BIASES = ("attn_q.bias", "attn_k.bias", "attn_v.bias")
MLP_BIASES = ("attn_output.bias", "ffn_gate.bias", "ffn_up.bias", "ffn_down.bias")
LONG_AND_SHORT = ("rope_factors_long.weight", "rope_factors_short.weight")

# name: architecture, layers, keys, a layer's optional tensors, the model's
TINY = {
    "llama": ("llama", 2, {"rope.dimension_count": HEAD_SIZE}, (*QKV_BIASES, *MLP_BIASES), ("rope_freqs.weight",)),
    "llama-linear": ("llama", 2, LINEAR, ("attn_qkv", "attn_qkv.bias"), ()),
    "llama-yarn": ("llama", 2, YARN, (), ("output.weight",)),
    "qwen2": ("qwen2", 2, {}, QKV_BIASES, ("output.weight", "output.bias")),
    "qwen3": ("qwen3", 2, {}, (), ()),
    "qwen3moe": (
        "qwen3moe",
        2,
        {"expert_count": 12, "expert_used_count": 3, "expert_feed_forward_length": 64},
        (),
        (),
    ),
    "mistral3": ("mistral3", 2, MISTRAL3, (), ()),
    "granite": ("granite", 2, GRANITE, (), ()),
    "smollm3": ("smollm3", 5, {}, (), ()),
    "olmo2": ("olmo2", 2, {}, (), ("output.weight",)),
    "olmo3": ("olmo2", 4, WINDOW | YARN, (), ("output.weight",)),
    "gemma2": ("gemma2", 3, GEMMA2, (), ()),
    "gemma3": ("gemma3", 7, GEMMA3, (), ()),
    "gemma3-pattern": ("gemma3", 3, WINDOW | {"attention.sliding_window_pattern": [True, False, True]}, (), ()),
    "phi3-short": ("phi3", 2, PHI3 | {"rope.scaling.original_context_length": 4096}, ("attn_qkv",), LONG_AND_SHORT),
    "phi3-long": ("phi3", 2, PHI3 | {"rope.scaling.original_context_length": 512}, ("attn_qkv",), LONG_AND_SHORT),
}


def entry(key, value):
    if isinstance(value, list):
        return key, encode_array(ValueType.BOOL, value)
    kinds = {int: ValueType.UINT32, float: ValueType.FLOAT32, str: ValueType.STRING}
    return key, encode_value(kinds[type(value)], value)


def metadata_of(name):
    """The metadata of a tiny model, without its vocabulary."""
    architecture, layers, keys, _, _ = TINY[name]
    own = {f"{architecture}.{key}": value for key, value in (BASE | {"block_count": layers} | keys).items()}
    return {"general.architecture": architecture} | own


def specs_of(name):
    """Its tensors, in the order that the architecture names them."""
    architecture, layers, _, optional, shared = TINY[name]
    layer = [f"blk.{i}.{one}{'' if one.endswith('.bias') else '.weight'}" for i in range(layers) for one in optional]
    present = {"token_embd.weight": (N_EMBD, N_VOCAB)} | dict.fromkeys(shared, ())
    config = configured(metadata_of(name), present)
    assert config.architecture == architecture in ARCHITECTURES
    return [
        TensorSpec(tensor, extents, F32 if len(extents) == 1 or "gate_inp" in tensor else F16)
        for tensor, extents in expected_tensors(config, [*layer, *shared]).items()
    ]


def values(rng, spec):
    shape = spec.shape[::-1]
    if spec.name.startswith("rope_"):
        return 1.0 + 3.0 * rng.random(shape)
    if spec.name.endswith(".bias"):
        return 0.3 * rng.standard_normal(shape)
    if len(shape) == 1:
        return 1.0 + 0.2 * rng.standard_normal(shape)
    width = {"token_embd.weight": 1.0, "output.weight": 0.25}.get(spec.name, 2.0 / np.sqrt(spec.shape[0]))
    return width * rng.standard_normal(shape)


def tiny_architecture(folder, name, template=TEMPLATE):
    """Writes `NAME.gguf` and its record into `folder`; returns it verified."""
    rng, path, specs = np.random.default_rng(7), folder / f"{name}.gguf", specs_of(name)
    entries = [entry(key, value) for key, value in metadata_of(name).items()]
    with writing(path, [*entries, *vocabulary_entries(template)], specs) as out:
        for spec in specs:
            out.write(values(rng, spec).astype(np.float32 if spec.type is F32 else np.float16).tobytes())
    fork = folder / f"{name}.gguf.FORK.json"
    record(path, fork)
    return verify(path, fork)


def prompt(n):
    """n tokens that are letters and signs."""
    return [33 + (7 * i * i + 3 * i) % 61 for i in range(n)]
