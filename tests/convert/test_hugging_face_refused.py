"""Folders that are not converted: the sentence names the file and the field, and nothing is left."""

import json
import os
import shutil

import numpy as np
import pytest

from bankml.errors import FileProblem, Refused
from tests.convert.hf_folder import LLAMA, converted, edit, rewrite

REFUSED = [
    ("config.json", "architectures", ["MixtralForCausalLM"], r"architectures is not one of \['LlamaForCausalLM'"),
    ("config.json", "architectures", [["x"]], "architectures is not one of"),
    ("config.json", "hidden_act", "gelu", "hidden_act is 'gelu', which is unsupported"),
    ("config.json", "attention_bias", True, "attention_bias is true, which is unsupported"),
    ("config.json", "mlp_bias", True, "mlp_bias is true, which is unsupported"),
    ("config.json", "use_sliding_window", True, "use_sliding_window is true"),
    ("config.json", "quantization_config", {"bits": 4}, "quantization_config is an object, which is unsupported"),
    ("config.json", "layer_types", ["sliding_attention"], "layer_types has unsupported layers"),
    ("config.json", "partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"),
    ("config.json", "rope_scaling", {"rope_type": "llama4"}, "rope_scaling has the unsupported type 'llama4'"),
    (
        "config.json",
        "rope_scaling",
        {"type": "dynamic", "factor": 2},
        "rope_scaling has the unsupported type 'dynamic'",
    ),
    ("config.json", "rope_scaling", {"type": "yarn"}, "factor is missing, not a positive number"),
    (
        "config.json",
        "rope_scaling",
        {"type": "yarn", "factor": 2, "beta_fast": 8},
        "beta_fast is 8, which is unsupported",
    ),
    ("config.json", "rope_scaling", {"type": "yarn", "factor": 2, "attention_factor": 1.0}, "attention_factor is 1.0"),
    (
        "config.json",
        "rope_scaling",
        {"type": "yarn", "factor": 2, "mscale": 1.0},
        "mscale is 1.0, which is unsupported",
    ),
    ("config.json", "rope_parameters", {"full_attention": {"rope_type": "yarn"}}, "full_attention is an object, which"),
    ("config.json", "rope_parameters", {"rope_type": "llama4"}, "rope_parameters has the unsupported type 'llama4'"),
    ("config.json", "rope_scaling", [], "rope_scaling is a list, not an object"),
    (
        "config.json",
        "rope_scaling",
        {"rope_type": "yarn", "type": "linear"},
        "has two types, 'yarn' and 'linear'",
    ),
    (
        "config.json",
        "rope_scaling",
        {"rope_type": "yarn", "factor": 2.0, "low_freq_factor": 1.0},
        "low_freq_factor is 1.0, which is unsupported",
    ),
    ("config.json", "is_causal", False, "is_causal is false, which is unsupported"),
    ("config.json", "num_local_experts", 8, "num_local_experts is 8, which is unsupported"),
    ("config.json", "n_heads", 2, "n_heads is 2, which is unsupported"),
    ("config.json", "dense_intermediate_size", 64, "dense_intermediate_size is 64, which is unsupported"),
    ("config.json", "global_rope_theta", 5.0, "global_rope_theta is 5.0, which is unsupported"),
    ("config.json", "num_hidden_layers", 0, "num_hidden_layers is 0, not a whole number from 1"),
    ("config.json", "num_hidden_layers", 1 << 40, "num_hidden_layers is "),
    ("config.json", "num_hidden_layers", 1, r"tensor 'model\.layers\.1\..* is not part of the"),
    ("config.json", "num_hidden_layers", 3, r"tensor 'model\.layers\.2\.input_layernorm\.weight' is missing"),
    ("config.json", "num_attention_heads", 1025, "num_attention_heads is 1025"),
    ("config.json", "num_attention_heads", True, "num_attention_heads is true"),
    ("config.json", "hidden_size", 64, r"has shape \[\d+, 128\], expected \[\d+, 64\]"),
    ("config.json", "vocab_size", 200, r"shape \[301, 128\], expected \[200, 128\]"),
    ("config.json", "vocab_size", 400, r"shape \[301, 128\], expected \[400, 128\]"),
    ("config.json", "rms_norm_eps", 0, "rms_norm_eps is 0, not a positive number"),
    ("config.json", "rope_theta", "big", "rope_theta is 'big'"),
    ("config.json", "max_position_embeddings", None, "max_position_embeddings is missing"),
    ("config.json", "head_dim", 33, "head_dim is 33, not even"),
    ("config.json", "tie_word_embeddings", "yes", "tie_word_embeddings is 'yes'"),
    ("generation_config.json", "temperature", "hot", "temperature is 'hot', not a number"),
    ("generation_config.json", "top_k", 1.5, "top_k is 1.5, not a whole number"),
    ("generation_config.json", "repetition_penalty", 0, "penalty_repeat"),
    ("tokenizer.json", "pre_tokenizer", None, "pre_tokenizer is unsupported \\(supported: smollm, qwen2,"),
    ("tokenizer.json", "pre_tokenizer", {"type": "ByteLevel"}, "pre_tokenizer is unsupported"),
    ("tokenizer.json", "normalizer", {"type": "NFKC"}, "normalizer changes the text"),
    ("tokenizer.json", "decoder", {"type": "Metaspace"}, "decoder is not ByteLevel"),
    ("tokenizer.json", "post_processor", {"type": "RobertaProcessing"}, "post_processor adds more than bos"),
    ("tokenizer.json", "model", {"type": "Unigram"}, "type is 'Unigram', which is unsupported"),
    (
        "tokenizer.json",
        "added_tokens",
        [{"id": 5, "content": "xy"}],
        r"added_tokens\[0\]: id is 5, where 'xy' is token 301",
    ),
    ("tokenizer.json", "added_tokens", [{"id": "0", "content": "x"}], r"added_tokens\[0\]: id is '0'"),
    ("tokenizer.json", "added_tokens", ["x"], r"added_tokens\[0\]: content is missing"),
    ("tokenizer.json", "added_tokens", [{"id": 301, "content": "xy", "lstrip": True}], "lstrip is true"),
    ("tokenizer_config.json", "add_sep_token", True, "add_sep_token is true"),
    ("tokenizer_config.json", "chat_template", None, "chat_template is not a string"),
    ("tokenizer_config.json", "chat_template", "{% for %}", "chat template"),
    ("tokenizer_config.json", "eos_token", None, "eos_token_id is missing"),
    ("tokenizer_config.json", "added_tokens_decoder", {"0": {"content": "x"}}, "added_tokens_decoder has 'x' at '0'"),
    ("tokenizer_config.json", "added_tokens_decoder", [], "added_tokens_decoder is a list, not an object"),
    ("tokenizer_config.json", "added_tokens_decoder", {}, "omits '<|endoftext|>', which tokenizer.json has"),
    ("tokenizer_config.json", "eos_token", "e", "eos_token names 'e', which is not a special token of tokenizer.json"),
    ("tokenizer_config.json", "mask_token", "<new>", "mask_token names '<new>', which is not a special token"),
    ("tokenizer_config.json", "additional_special_tokens", ["e"], "additional_special_tokens names 'e', which"),
    ("tokenizer_config.json", "extra_special_tokens", {"x_token": "e"}, "extra_special_tokens names 'e', which"),
    ("tokenizer_config.json", "additional_special_tokens", 3, "additional_special_tokens is 3, not a list"),
    ("special_tokens_map.json", "bos_token", {"content": "e"}, "map.json: bos_token names 'e', which is not a special"),
    ("added_tokens.json", "<new>", 301, "added_tokens.json: '<new>' is 301: not so in tokenizer.json"),
    ("generation_config.json", "mirostat", 3, "general.sampling.mirostat must be 0, 1 or 2"),
    ("generation_config.json", "sequence", ["top_k"], "sequence is a list, not a string"),
    ("modules.json", "x", {}, "has modules.json: embedding models are unsupported"),
]


@pytest.mark.parametrize(("file", "key", "value", "says"), REFUSED)
def test_what_is_refused_is_named_and_nothing_is_left(folder, tmp_path, file, key, value, says):
    edit(folder, file, key, value)
    with pytest.raises(Refused, match=says):
        converted(folder, tmp_path)
    assert os.listdir(tmp_path) == ["folder"]


MODEL = [
    ("byte_fallback", True, "byte_fallback is true"),
    ("ignore_merges", True, "has ignore_merges, which is unsupported with the pre-tokenizer"),
    ("end_of_word_suffix", "</w>", "end_of_word_suffix is '</w>'"),
    ("vocab", [], "vocab is a list"),
    ("vocab", {"a": 0, "b": 0}, "gives the id 0 twice"),
    ("vocab", {"a": -1}, "gives 'a' the id -1"),
    ("merges", "a b", "merges is 'a b', not a list"),
    ("merges", [["a"]], r"merges\[0\] is neither"),
    ("merges", ["ab"], "tokenizer.ggml.merges has an entry without two sides at 0"),
]


@pytest.mark.parametrize(("key", "value", "says"), MODEL)
def test_bpe_models_that_are_refused(folder, tmp_path, key, value, says):
    edit(folder, "tokenizer.json", "model", key, value)
    with pytest.raises(Refused, match=says):
        converted(folder, tmp_path)
    assert os.listdir(tmp_path) == ["folder"]


WEIGHTS = {
    "is missing from": lambda it: it.pop("model.layers.1.mlp.up_proj.weight"),
    r"tensor 'model\.extra' is not part of the": lambda it: it.update({"model.extra": np.zeros(3, np.float32)}),
    r"has shape \[256\], expected \[128\]": lambda it: it.update({"model.norm.weight": np.zeros(256, np.float32)}),
    r"unsupported type F64 \(supported: F32, F16, BF16\)": lambda it: it.update(
        {"model.norm.weight": np.zeros(128, np.float64)}
    ),
    "has a weight that is not finite": lambda it: it["model.norm.weight"].__setitem__(0, np.nan),
    "magnitude 1e\\+06, too large for f16": lambda it: it.update(
        {"model.layers.0.mlp.up_proj.weight": np.full((256, 128), 1e6, np.float32)}
    ),
}


@pytest.mark.parametrize("says", WEIGHTS)
def test_weights_that_are_refused(folder, tmp_path, says):
    rewrite(folder, WEIGHTS[says])
    with pytest.raises(Refused, match=says):
        converted(folder, tmp_path)
    assert os.listdir(tmp_path) == ["folder"]


PER_TOKEN = ("model.embed_tokens.weight", "lm_head.weight")


def rows(weight, count):
    return np.resize(weight, (count, weight.shape[1]))


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (["xy", "xy"], r"added_tokens\[1\]: content is 'xy', a duplicate"),
        (["é"], r"content is 'é', which decodes to other bytes"),
    ],
)
def test_added_tokens_that_would_not_be_what_they_say(folder, tmp_path, tokens, says):
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    added = [{"id": vocab.get(text, len(vocab)), "content": text} for text in tokens]
    vocab |= {text: len(vocab) for text in tokens if text not in vocab}
    edit(folder, "tokenizer.json", "added_tokens", added)
    edit(folder, "config.json", "vocab_size", len(vocab))
    rewrite(folder, lambda it: it.update({name: rows(it[name], len(vocab)) for name in PER_TOKEN if name in it}))
    with pytest.raises(Refused, match=says):
        converted(folder, tmp_path)


def test_an_index_that_is_not_what_the_files_hold(made, tmp_path):
    folder = shutil.copytree(made / f"{LLAMA.name}-3", tmp_path / "folder")
    index = "model.safetensors.index.json"
    good = (folder / index).read_text()
    places = json.loads(good)["weight_map"]
    other = next(file for file in sorted(set(places.values())) if file != places["model.norm.weight"])
    for tensor, file, says in (
        ("model.norm.weight", "../x.safetensors", "not a .safetensors file name"),
        ("model.norm.weight", 3, "not a .safetensors file name"),
        ("model.norm.weight", other, "does not match the files' tensors: 'model.norm.weight'"),
        ("more", other, "does not match the files' tensors: 'more'"),
    ):
        (folder / index).write_text(good)
        edit(folder, index, "weight_map", tensor, file)
        with pytest.raises(Refused, match=says):
            converted(folder, tmp_path)
    (folder / index).write_text('{"weight_map": {}}')
    with pytest.raises(Refused, match=r"^model\.safetensors\.index\.json: weight_map names no file$"):
        converted(folder, tmp_path)
    (folder / index).write_text(good)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(FileProblem, match=r"cannot read .*model-00002-of-00003\.safetensors: no such file"):
        converted(folder, tmp_path)
    (folder / index).unlink()
    with pytest.raises(Refused, match=r"has 2 \.safetensors files and no model\.safetensors\.index\.json"):
        converted(folder, tmp_path)
