"""Each architecture's keys and tensors: what is missing, wrong or not its own is refused by name."""

from types import SimpleNamespace

import pytest

from bankml.errors import Refused
from bankml.gguf.header import TensorInfo
from bankml.model.config import read_config
from tests.tiny_architectures import TINY, metadata_of, specs_of
from tests.tiny_model import N_VOCAB


def header(name, keys=None, without=(), changed=None, more=()):
    """The header of a tiny model. `keys`, without the architecture's prefix, replace its own; None removes one."""
    architecture = TINY[name][0]
    replaced = {f"{architecture}.{key}": value for key, value in (keys or {}).items()}
    metadata = metadata_of(name) | {"tokenizer.ggml.tokens": [b"x"] * N_VOCAB} | replaced
    specs = [spec for spec in specs_of(name) if spec.name not in without]
    infos = [TensorInfo(one.name, (changed or {}).get(one.name, one.shape), one.type, 0, 0) for one in specs]
    infos += [TensorInfo(one, (8,), specs[1].type, 0, 0) for one in more]
    return SimpleNamespace(
        metadata={key: value for key, value in metadata.items() if value is not None}, tensors=tuple(infos)
    )


def refusal(*arguments, **changes):
    with pytest.raises(Refused) as refused:
        read_config(header(*arguments, **changes))
    return refused.value.message


@pytest.mark.parametrize("name", TINY)
def test_every_tensor_is_needed_in_its_shape(name):
    assert read_config(header(name)).architecture == TINY[name][0]
    optional = (*TINY[name][3], *TINY[name][4])
    for spec in specs_of(name):
        short = spec.name.removesuffix(".weight").split(".", 2)[-1]
        if spec.name not in optional and short not in optional:
            assert spec.name in refusal(name, without=[spec.name]) or "attn_qkv" in optional
        odd = (*spec.shape[:-1], spec.shape[-1] + 8)
        if spec.name != "token_embd.weight":
            assert f"tensor '{spec.name}' has shape {list(odd)}" in refusal(name, changed={spec.name: odd})


@pytest.mark.parametrize("name", TINY)
def test_another_architectures_tensors_are_refused(name):
    own = {spec.name for spec in specs_of(name)}
    for foreign in ("blk.0.attn_sinks.weight", "blk.0.ffn_gate_shexp.weight", "per_layer_model_proj.weight"):
        assert foreign not in own
        assert f"tensor '{foreign}' is not part of the {TINY[name][0]} architecture" in refusal(name, more=[foreign])


@pytest.mark.parametrize(
    "name,changes,says",
    [
        ("qwen2", {"keys": {"attention.scale": 0.5}}, "qwen2.attention.scale is 0.5"),
        ("qwen2", {"keys": {"attention.sliding_window": 64}}, "qwen2.attention.sliding_window is 64"),
        ("qwen3", {"keys": {"expert_count": 8}}, "qwen3.expert_count is 8"),
        ("qwen3moe", {"keys": {"expert_count": None}}, "qwen3moe.expert_count is missing"),
        ("qwen3moe", {"keys": {"expert_used_count": 13}}, "qwen3moe.expert_used_count is 13, outside 1 to 12"),
        ("qwen3moe", {"keys": {"expert_gating_func": 2}}, "qwen3moe.expert_gating_func is 2"),
        (
            "qwen3moe",
            {"keys": {"expert_feed_forward_length": None, "feed_forward_length": None}},
            "qwen3moe.expert_feed_forward_length is missing",
        ),
        ("llama", {"keys": {"feed_forward_length": 0}}, "llama.feed_forward_length is 0, outside 1 to"),
        ("llama", {"keys": {"attention.temperature_scale": 0.1}}, "llama.attention.temperature_scale is 0.1"),
        ("mistral3", {"keys": {"attention.temperature_scale": -0.1}}, "temperature_scale is not a positive number"),
        ("llama-yarn", {"keys": {"rope.scaling.yarn_beta_fast": 8.0}}, "llama.rope.scaling.yarn_beta_fast is 8.0"),
        ("granite", {"keys": {"logit_scale": None}}, "granite.logit_scale is missing"),
        ("granite", {"keys": {"logit_scale": 1e-40}}, "granite.logit_scale is 1e-40, below 1e-30"),
        ("granite", {"keys": {"rope.scaling.finetuned": False}}, "granite.rope.scaling.finetuned is False"),
        ("smollm3", {"keys": {"attention.sliding_window": 64}}, "smollm3.attention.sliding_window is 64"),
        ("olmo2", {"without": ["output.weight"]}, "tensor 'output.weight' is missing"),
        ("olmo3", {"keys": {"attention.sliding_window_pattern": [True]}}, "not one flag for each layer"),
        ("phi3-long", {"keys": {"attention.sliding_window": "64"}}, "phi3.attention.sliding_window is not one whole"),
        ("phi3-long", {"keys": {"rope.dimension_count": 47}}, "rope.dimension_count is 47, not even"),
        ("phi3-long", {"keys": {"rope.scaling.type": "dynamic"}}, "phi3.rope.scaling.type is 'dynamic'"),
        ("gemma2", {"more": ["output.weight"]}, "'output.weight' is not part of the gemma2 architecture"),
        ("gemma2", {"keys": {"rope.freq_base_swa": 0.5}}, "gemma2.rope.freq_base_swa is 0.5, below 1"),
        ("gemma2", {"keys": {"final_logit_softcapping": 0.0}}, "final_logit_softcapping is not a positive number"),
        ("gemma3", {"keys": {"attn_logit_softcapping": 50.0}}, "gemma3.attn_logit_softcapping is 50.0"),
        ("gemma3", {"keys": {"rope.scaling.type": "yarn"}}, "gemma3.rope.scaling.type is 'yarn'"),
        ("gemma3", {"keys": {"attention.key_length_swa": 32}}, "gemma3.attention.key_length_swa is 32"),
    ],
)
def test_keys_are_refused_by_name(name, changes, says):
    assert says in refusal(name, **changes)


def test_what_a_key_changes():
    gemma = read_config(header("gemma3"))
    assert (gemma.window.size, gemma.window.layers) == (64, (True,) * 5 + (False, True))
    assert (gemma.rope.factor, gemma.window.rope.factor, gemma.window.rope.base) == (8.0, 1.0, 10000.0)
    assert (gemma.query_factor, gemma.attention_scale, gemma.embedding_factor) == (0.125, 1.0, pytest.approx(128**0.5))
    assert read_config(header("gemma3", {"attention.sliding_window": 0})).window is None
    assert read_config(header("gemma2")).window.layers == (True, False, True)
    assert read_config(header("llama", {"attention.sliding_window": 4096})).window is None
    yarn = read_config(header("mistral3"))
    assert (yarn.rope.yarn.beta_fast, yarn.rope.yarn.log_multiplier, yarn.temperature.context) == (24.0, 0.75, 256)
    assert read_config(header("qwen3moe", {"feed_forward_length": None})).n_ff == 0
