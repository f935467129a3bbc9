"""Folders of other architectures than Llama and Qwen3, converted by the rules of llama.cpp's converter."""

from dataclasses import replace

import numpy as np
import pytest

from bankml.convert.hugging_face.convert import convert_folder
from bankml.errors import Refused
from bankml.gguf.header import read_header
from bankml.model.config import read_config
from tests.convert.hf_folder import tensors_of
from tests.convert.synthetic import CONFIGS, HIDDEN, LAYERS, Folder, save, weights, write

FACTORS = {
    "attention_multiplier": 0.0625,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.25,
    "logits_scaling": 8.0,
}
# architecture: class, fields, header keys that must be there, keys that must not
CASES = {
    "llama": ("MistralForCausalLM", {"sliding_window": 4096}, {"llama.attention.key_length": 16}, ()),
    "qwen2": (
        "Qwen2ForCausalLM",
        {"tie_word_embeddings": True},
        {},
        ("qwen2.attention.key_length", "qwen2.vocab_size"),
    ),
    "smollm3": (
        "SmolLM3ForCausalLM",
        {"rope_theta": None, "no_rope_layer_interval": 4},
        {"smollm3.rope.freq_base": 2e6, "smollm3.rope.dimension_count": 16},
        ("smollm3.attention.key_length",),
    ),
    "granite": (
        "GraniteForCausalLM",
        FACTORS | {"head_dim": 16, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {
            "granite.attention.scale": 0.0625,
            "granite.embedding_scale": 12.0,
            "granite.residual_scale": 0.25,
            "granite.logit_scale": 8.0,
            "granite.rope.scaling.type": "linear",
            "granite.rope.scaling.factor": 2.0,
        },
        ("granite.attention.key_length",),
    ),
    "olmo2": ("Olmo2ForCausalLM", {}, {}, ("olmo2.attention.key_length", "olmo2.vocab_size")),
}
PAIRED = ("llama", "smollm3", "granite")  # RoPE on adjacent pairs


def folder_of(architecture, **more):
    name, fields, _, _ = CASES[architecture]
    return Folder(architecture, "llama", config={"architectures": [name], **fields, **more})


def arrays_of(architecture, folder):
    arrays = weights(replace(folder, architecture="llama"), CONFIGS["llama"] | folder.config)
    random = np.random.RandomState(5)
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        if architecture == "qwen2":
            for part, rows in (("q", 64), ("k", 32), ("v", 32)):
                arrays[f"{layer}.self_attn.{part}_proj.bias"] = random.standard_normal(rows).astype(np.float32)
        if architecture == "olmo2":
            del arrays[f"{layer}.input_layernorm.weight"]
            more = {"self_attn.q_norm": 64, "self_attn.k_norm": 32, "post_feedforward_layernorm": HIDDEN}
            for name, size in more.items():
                arrays[f"{layer}.{name}.weight"] = random.standard_normal(size).astype(np.float32)
    return arrays


def in_pairs(rows, heads):
    """Rows i and i + n/2 of each head, one behind the other."""
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


@pytest.mark.parametrize("architecture", CASES)
def test_keys_and_tensors(tmp_path, architecture):
    folder = folder_of(architecture)
    source, target = write(folder, tmp_path / "folder"), tmp_path / "out.gguf"
    arrays = arrays_of(architecture, folder)
    save(source / "model.safetensors", arrays, "F32")
    convert_folder(str(source), str(target), "x")
    _, _, keys, missing = CASES[architecture]
    header = read_header(target)
    assert header.metadata["general.architecture"] == architecture
    assert {key: header.metadata.get(key) for key in keys} == pytest.approx(keys)
    assert not set(missing) & set(header.metadata)
    assert read_config(header).architecture == architecture
    made = {name: raw for name, (_, raw) in tensors_of(target).items()}
    for part, heads in (("q", 4), ("k", 2)):
        stored = arrays[f"model.layers.1.self_attn.{part}_proj.weight"]
        expected = in_pairs(stored, heads) if architecture in PAIRED else stored
        assert bytes(made[f"blk.1.attn_{part}.weight"]) == expected.astype(np.float16).tobytes()
    if architecture == "qwen2":
        assert bytes(made["blk.0.attn_k.bias"]) == arrays["model.layers.0.self_attn.k_proj.bias"].tobytes()
    if architecture == "olmo2":
        for name, stored in (("attn_q_norm", "self_attn.q_norm"), ("post_ffw_norm", "post_feedforward_layernorm")):
            assert bytes(made[f"blk.0.{name}.weight"]) == arrays[f"model.layers.0.{stored}.weight"].tobytes()
    assert len(made) == len(arrays)


@pytest.mark.parametrize(
    "architecture,field,value",
    [
        ("granite", "head_dim", 24),
        ("smollm3", "no_rope_layer_interval", 3),
        ("olmo2", "sliding_window", 4096),
        ("olmo2", "tie_word_embeddings", True),
        ("qwen2", "use_sliding_window", True),
        ("granite", "logits_scaling", -1.0),
    ],
)
def test_what_is_not_converted_is_named(tmp_path, architecture, field, value):
    source = write(folder_of(architecture, **{field: value}), tmp_path / "folder")
    with pytest.raises(Refused, match=field):
        convert_folder(str(source), str(tmp_path / "out.gguf"), "x")
    assert not (tmp_path / "out.gguf").exists()
