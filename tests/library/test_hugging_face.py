"""Models taken apart into safetensors folders and converted back: the same bits, the same answers."""

import json
import os
import shutil
from hashlib import sha256

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bankml.engine.completion import Job, complete
from bankml.errors import FileProblem, Refused
from bankml.gate.verify import record, verify
from bankml.gguf.header import read_header
from bankml.library.hugging_face.convert import convert_folder
from bankml.library.load import load
from tests import oracle
from tests.end_to_end import tiny
from tests.library.hf_folder import make_folder, tensors_of

LLAMA, QWEN3 = tiny.MODELS[:2]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Both models as GGUF files and as folders of one and of three safetensors files."""
    where = tmp_path_factory.mktemp("models")
    for one in (LLAMA, QWEN3):
        tiny.write(where / f"{one.name}.gguf", one)
        for shards in (1, 3):
            make_folder(where / f"{one.name}.gguf", where / f"{one.name}-{shards}", shards)
    return where


@pytest.fixture(params=[LLAMA.name, QWEN3.name])
def folder(made, tmp_path, request):
    """A folder to spoil."""
    return shutil.copytree(made / f"{request.param}-1", tmp_path / "folder")


def answer(path, prompt, count=24):
    fork = f"{path}.FORK.json"
    record(path, fork)
    resident = load(verify(path, fork), 512)
    try:
        body = {"messages": [{"role": "user", "content": prompt}], "temperature": 0}
        tokens = resident.tokens.encode(resident.prompt(body).text)
        steps = complete(Job(tokens, count), resident.engine, resident.sampler(body), resident.text_pieces(()))
        return [(step.token, step.text) for step in steps]
    finally:
        resident.engine.close()


def same(original, converted, apart):
    """Bit-equal tensors under the same names, and every key but those of `apart` with the same value."""
    before, after = tensors_of(original), tensors_of(converted)
    assert before.keys() == after.keys()
    for name, (tensor, raw) in before.items():
        assert (after[name][0].type, after[name][0].shape) == (tensor.type, tensor.shape)
        assert after[name][1] == raw, name
    old, new = read_header(original).metadata, read_header(converted).metadata
    assert {key for key in old.keys() | new.keys() if key not in old or key not in new or old[key] != new[key]} == apart


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("model", [LLAMA, QWEN3], ids=lambda one: one.name)
def test_the_same_bits_and_the_same_answer(made, tmp_path, model, shards):
    original, target, done = made / f"{model.name}.gguf", tmp_path / "out.gguf", []
    source = made / f"{model.name}-{shards}"
    inputs = convert_folder(str(source), str(target), model.name, done.append)
    # Qwen3's graph needs none of the three; the tests' models say them all the same.
    extra = {"qwen3.rope.dimension_count", "qwen3.vocab_size"} if model is QWEN3 else set()
    general = {"general.type", "general.file_type", "general.quantization_version"}
    same(original, target, general | {"tokenizer.ggml.add_eos_token"} | extra)
    assert os.listdir(tmp_path) == ["out.gguf"]
    assert answer(original, "the thing") == answer(target, "the thing") != answer(target, "another")
    index = ["model.safetensors.index.json"] if shards > 1 else []
    weights = sorted(name for name in os.listdir(source) if name.endswith(".safetensors"))
    assert [one.path for one in inputs] == [
        "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", *index, *weights
    ]  # fmt: skip
    for one in inputs:
        content = (source / one.path).read_bytes()
        assert (one.bytes, one.sha256) == (len(content), sha256(content).hexdigest())
    assert sum(done) == sum((source / name).stat().st_size for name in weights) + sum(
        tensor.nbytes for path in weights for tensor in load_file(source / path).values()
    )


def rewrite(folder, change):
    """The folder's only safetensors file with its arrays changed."""
    arrays = load_file(folder / "model.safetensors")
    change(arrays)
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / "model.safetensors")


def edit(folder, file, *path_and_value):
    """Sets the value at a path of keys in one of the folder's JSON files; None takes the key out."""
    *path, last, value = path_and_value
    document = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    at = document
    for key in path:
        at = at[key]
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value
    (folder / file).write_text(json.dumps(document))


def converted(folder, tmp_path):
    target = tmp_path / "out.gguf"
    convert_folder(str(folder), str(target), "model")
    return target


def test_f32_is_rounded_to_the_nearest_f16_ties_to_even(folder, tmp_path):
    values = np.array([1 + 2**-11, 1 + 3 * 2**-11, 65519.9, 2**-25, 3 * 2**-25, -0.0, 0.1], np.float32)

    def widen(arrays):
        for name in arrays:
            arrays[name] = arrays[name].astype(np.float32)
        arrays["model.layers.0.mlp.up_proj.weight"].reshape(-1)[: len(values)] = values

    rewrite(folder, widen)
    _, raw = tensors_of(converted(folder, tmp_path))["blk.0.ffn_up.weight"]
    assert raw[: 2 * len(values)] == np.array([0x3C00, 0x3C02, 0x7BFF, 0x0000, 0x0002, 0x8000, 0x2E66], "<u2").tobytes()


def test_bf16_is_rounded_as_the_float_it_is(folder, tmp_path):
    """The package's numpy has no bfloat16: the file is written by hand, from the same arrays cut to 16 bits."""
    arrays = {name: array.astype("<f4") for name, array in load_file(folder / "model.safetensors").items()}
    halves = {name: (array.view("<u4") >> 16).astype("<u2") for name, array in arrays.items()}
    header, at = {}, 0
    for name, half in halves.items():
        header[name] = {"dtype": "BF16", "shape": list(half.shape), "data_offsets": [at, at + half.nbytes]}
        at += half.nbytes
    raw = json.dumps(header).encode()
    data = b"".join(half.tobytes() for half in halves.values())
    (folder / "model.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    got = tensors_of(converted(folder, tmp_path))
    for name, stored in (("blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight"),):
        wanted = (halves[stored].astype("<u4") << 16).view("<f4")
        assert got[name][1] == wanted.astype("<f2").tobytes()
    norm = (halves["model.norm.weight"].astype("<u4") << 16).view("<f4")
    assert got["output_norm.weight"][1] == norm.tobytes()


def test_what_the_folder_may_say_in_other_ways(folder, tmp_path):
    """Newer rope_parameters with YaRN, merges as texts, the template in a file of its own, tensors nobody needs."""
    arch = read_header(converted(folder, tmp_path)).metadata["general.architecture"]
    edit(folder, "config.json", "rope_theta", None)
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048, "rope_theta": 50000}
    yarn |= {"beta_fast": 32.0, "beta_slow": 1, "attention_factor": None, "partial_rotary_factor": 1.0}
    edit(folder, "config.json", "rope_parameters", yarn)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = [" ".join(pair) for pair in tokenizer["model"]["merges"]]
    tokenizer["added_tokens"].append({"id": tokenizer["model"]["vocab"]["it"], "content": "it", "special": False})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    again = {str(one["id"]): {**one, "single_word": None} for one in tokenizer["added_tokens"]}
    edit(folder, "tokenizer_config.json", "added_tokens_decoder", again)
    edit(folder, "tokenizer_config.json", "chat_template", None)
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    edit(folder, "generation_config.json", "repetition_penalty", 1.25)
    rewrite(folder, lambda it: it.update({"model.layers.0.self_attn.rotary_emb.inv_freq": np.zeros(4, np.float32)}))
    os.unlink(tmp_path / "out.gguf")
    found = read_header(converted(folder, tmp_path)).metadata
    assert found[f"{arch}.rope.scaling.type"] == "yarn" and found[f"{arch}.rope.scaling.factor"] == 4.0
    assert found[f"{arch}.rope.scaling.original_context_length"] == 2048
    assert found[f"{arch}.rope.freq_base"] == 50000.0
    assert list(found["tokenizer.ggml.merges"]) == [merge.encode() for merge in tiny.MERGES]
    assert found["tokenizer.chat_template"] == "{{ messages[0].content }}"
    assert found["general.sampling.penalty_repeat"] == 1.25
    assert found["tokenizer.ggml.token_type"][tokenizer["model"]["vocab"]["it"]] == 4


def test_rows_that_no_token_has_are_unused_ones(folder, tmp_path):
    size = len(tiny.vocabulary()) + 2

    def lengthen(arrays):
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            if name in arrays:
                arrays[name] = np.concatenate([arrays[name], arrays[name][:2]])

    rewrite(folder, lengthen)
    edit(folder, "config.json", "vocab_size", size)
    metadata = read_header(converted(folder, tmp_path)).metadata
    assert metadata["tokenizer.ggml.tokens"][-2:] == [b"[PAD%d]" % (size - 2), b"[PAD%d]" % (size - 1)]
    assert list(metadata["tokenizer.ggml.token_type"][-2:]) == [5, 5]


REFUSED = [
    ("config.json", "architectures", ["MistralForCausalLM"], r"architectures is not one of \['LlamaForCausalLM'\]"),
    ("config.json", "architectures", [["x"]], "architectures is not one of"),
    ("config.json", "hidden_act", "gelu", "hidden_act is 'gelu': not played"),
    ("config.json", "attention_bias", True, "attention_bias is true: not played"),
    ("config.json", "mlp_bias", True, "mlp_bias is true: not played"),
    ("config.json", "use_sliding_window", True, "use_sliding_window is true"),
    ("config.json", "quantization_config", {"bits": 4}, "quantization_config is an object: not played"),
    ("config.json", "layer_types", ["sliding_attention"], "layer_types has layers"),
    ("config.json", "partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"),
    ("config.json", "rope_scaling", {"rope_type": "llama3"}, "rope_scaling is of the type 'llama3': only yarn"),
    ("config.json", "rope_scaling", {"type": "linear", "factor": 2}, "rope_scaling is of the type 'linear'"),
    ("config.json", "rope_scaling", {"type": "yarn"}, "factor is missing, not a positive number"),
    ("config.json", "rope_scaling", {"type": "yarn", "factor": 2, "beta_fast": 8}, "beta_fast is 8: not played"),
    ("config.json", "rope_scaling", {"type": "yarn", "factor": 2, "attention_factor": 1.0}, "attention_factor is 1.0"),
    ("config.json", "rope_scaling", {"type": "yarn", "factor": 2, "mscale": 1.0}, "mscale is 1.0: not played"),
    ("config.json", "rope_parameters", {"full_attention": {"rope_type": "yarn"}}, "full_attention is an object: not"),
    ("config.json", "rope_parameters", {"rope_type": "llama3"}, "rope_parameters is of the type 'llama3'"),
    ("config.json", "rope_scaling", [], "rope_scaling is a list, not an object"),
    (
        "config.json",
        "rope_scaling",
        {"rope_type": "yarn", "type": "linear"},
        "of the type 'yarn' and of the type 'linear'",
    ),
    (
        "config.json",
        "rope_scaling",
        {"rope_type": "llama3", "low_freq_factor": 1.0},
        "is of the type 'llama3': only yarn",
    ),
    ("config.json", "is_causal", False, "is_causal is false: not played"),
    ("config.json", "num_local_experts", 8, "num_local_experts is 8: not played"),
    ("config.json", "n_heads", 2, "n_heads is 2: not played"),
    ("config.json", "dense_intermediate_size", 64, "dense_intermediate_size is 64: not played"),
    ("config.json", "global_rope_theta", 5.0, "global_rope_theta is 5.0: not played"),
    ("config.json", "num_hidden_layers", 0, "num_hidden_layers is 0, not a whole number from 1"),
    ("config.json", "num_hidden_layers", 1 << 40, "num_hidden_layers is "),
    ("config.json", "num_hidden_layers", 1, r"tensor 'model\.layers\.1\..* is not part of the"),
    ("config.json", "num_hidden_layers", 3, r"tensor 'model\.layers\.2\.input_layernorm\.weight' is missing"),
    ("config.json", "num_attention_heads", 1025, "num_attention_heads is 1025"),
    ("config.json", "num_attention_heads", True, "num_attention_heads is true"),
    ("config.json", "hidden_size", 64, r"has shape \[\d+, 128\], not \[\d+, 64\]"),
    ("config.json", "vocab_size", 200, "one of 200"),
    ("config.json", "vocab_size", 400, r"shape \[301, 128\], not \[400, 128\]"),
    ("config.json", "rms_norm_eps", 0, "rms_norm_eps is 0, not a positive number"),
    ("config.json", "rope_theta", "big", "rope_theta is 'big'"),
    ("config.json", "max_position_embeddings", None, "max_position_embeddings is missing"),
    ("config.json", "head_dim", 33, "head_dim is 33, not even"),
    ("config.json", "tie_word_embeddings", "yes", "tie_word_embeddings is 'yes'"),
    ("generation_config.json", "temperature", "hot", "temperature is 'hot', not a number"),
    ("generation_config.json", "top_k", 1.5, "top_k is 1.5, not a whole number"),
    ("generation_config.json", "repetition_penalty", 0, "penalty_repeat"),
    ("tokenizer.json", "pre_tokenizer", None, "pre_tokenizer is not that of smollm or qwen2"),
    ("tokenizer.json", "pre_tokenizer", {"type": "ByteLevel"}, "pre_tokenizer is not that of"),
    ("tokenizer.json", "normalizer", {"type": "NFKC"}, "normalizer changes the text"),
    ("tokenizer.json", "decoder", {"type": "Metaspace"}, "decoder is not ByteLevel"),
    ("tokenizer.json", "post_processor", {"type": "RobertaProcessing"}, "post_processor adds tokens"),
    ("tokenizer.json", "model", {"type": "Unigram"}, "type is 'Unigram': only BPE"),
    (
        "tokenizer.json",
        "added_tokens",
        [{"id": 5, "content": "xy"}],
        r"added_tokens\[0\]: id is 5, where 'xy' is token 301",
    ),
    ("tokenizer.json", "added_tokens", [{"id": "0", "content": "x"}], r"added_tokens\[0\]: id is '0'"),
    ("tokenizer.json", "added_tokens", ["x"], r"added_tokens\[0\]: content is missing"),
    ("tokenizer.json", "added_tokens", [{"id": 301, "content": "xy", "lstrip": True}], "lstrip is true"),
    ("tokenizer_config.json", "add_bos_token", True, "add_bos_token is true"),
    ("tokenizer_config.json", "chat_template", None, "chat_template is no text"),
    ("tokenizer_config.json", "chat_template", "{% for %}", "chat template"),
    ("tokenizer_config.json", "eos_token", None, "eos_token_id is missing"),
    ("tokenizer_config.json", "added_tokens_decoder", {"0": {"content": "x"}}, "added_tokens_decoder has 'x' at '0'"),
    ("tokenizer_config.json", "added_tokens_decoder", [], "added_tokens_decoder is a list, not an object"),
    ("tokenizer_config.json", "added_tokens_decoder", {}, "leaves out '<|endoftext|>', which tokenizer.json has"),
    ("tokenizer_config.json", "eos_token", "e", "eos_token names 'e', which is no special token of tokenizer.json"),
    ("tokenizer_config.json", "mask_token", "<new>", "mask_token names '<new>', which is no special token"),
    ("tokenizer_config.json", "additional_special_tokens", ["e"], "additional_special_tokens names 'e', which"),
    ("tokenizer_config.json", "extra_special_tokens", {"x_token": "e"}, "extra_special_tokens names 'e', which"),
    ("tokenizer_config.json", "additional_special_tokens", 3, "additional_special_tokens is 3, not a list"),
    ("special_tokens_map.json", "bos_token", {"content": "e"}, "map.json: bos_token names 'e', which is no special"),
    ("added_tokens.json", "<new>", 301, "added_tokens.json: '<new>' is 301: not so in tokenizer.json"),
    ("generation_config.json", "mirostat", 3, "general.sampling.mirostat must be 0, 1 or 2"),
    ("generation_config.json", "sequence", ["top_k"], "sequence is a list, not a text"),
    ("modules.json", "x", {}, "has modules.json: a model for embeddings"),
]


@pytest.mark.parametrize(("file", "key", "value", "says"), REFUSED)
def test_what_is_refused_is_named_and_nothing_is_left(folder, tmp_path, file, key, value, says):
    edit(folder, file, key, value)
    with pytest.raises(Refused, match=says):
        converted(folder, tmp_path)
    assert os.listdir(tmp_path) == ["folder"]


MODEL = [
    ("byte_fallback", True, "byte_fallback is true"),
    ("ignore_merges", True, "ignore_merges is true"),
    ("end_of_word_suffix", "</w>", "end_of_word_suffix is '</w>'"),
    ("vocab", [], "vocab is a list"),
    ("vocab", {"a": 0, "b": 0}, "gives the number 0 twice"),
    ("vocab", {"a": -1}, "gives 'a' the number -1"),
    ("merges", "a b", "merges is 'a b', not a list"),
    ("merges", [["a"]], r"merges\[0\] is neither"),
    ("merges", ["ab"], "tokenizer.ggml.merges has no two sides at 0"),
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
    r"has shape \[256\], not \[128\]": lambda it: it.update({"model.norm.weight": np.zeros(256, np.float32)}),
    "is F64; F32, F16, BF16 are read": lambda it: it.update({"model.norm.weight": np.zeros(128, np.float64)}),
    "holds a weight that is not finite": lambda it: it["model.norm.weight"].__setitem__(0, np.nan),
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


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (["xy", "xy"], r"added_tokens\[1\]: content is 'xy' once more"),
        (["é"], r"content is 'é', which stands for other bytes once it is read"),
    ],
)
def test_added_tokens_that_would_not_be_what_they_say(folder, tmp_path, tokens, says):
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    added = [{"id": vocab.get(text, len(vocab)), "content": text} for text in tokens]
    vocab |= {text: len(vocab) for text in tokens if text not in vocab}
    edit(folder, "tokenizer.json", "added_tokens", added)
    edit(folder, "config.json", "vocab_size", len(vocab))
    with pytest.raises(Refused, match=says):
        converted(folder, tmp_path)


def test_special_tokens_that_are_said_again(folder, tmp_path):
    """Files of older versions that say the same as tokenizer.json change nothing; the two are inputs."""
    before = read_header(converted(folder, tmp_path)).metadata
    edit(folder, "special_tokens_map.json", "bos_token", "<|endoftext|>")
    edit(folder, "added_tokens.json", "<|im_end|>", 2)
    inputs = convert_folder(str(folder), str(tmp_path / "again.gguf"), "model")
    assert {"special_tokens_map.json", "added_tokens.json"} <= {one.path for one in inputs}
    after = read_header(tmp_path / "again.gguf").metadata
    assert before.keys() == after.keys()
    assert list(before["tokenizer.ggml.token_type"]) == list(after["tokenizer.ggml.token_type"])


def test_embeddings_that_are_tied_or_not(made, tmp_path):
    """Tied, and another head: refused; with the copy that some files have: it goes. Not tied, and no head: refused."""
    folder = shutil.copytree(made / f"{QWEN3.name}-1", tmp_path / "folder")
    edit(folder, "config.json", "tie_word_embeddings", True)
    with pytest.raises(Refused, match=r"'lm_head\.weight' is not 'model\.embed_tokens\.weight', though tie_word"):
        converted(folder, tmp_path)
    assert os.listdir(tmp_path) == ["folder"]
    rewrite(folder, lambda it: it.update({"lm_head.weight": it["model.embed_tokens.weight"]}))
    assert "output.weight" not in tensors_of(converted(folder, tmp_path))
    edit(folder, "config.json", "tie_word_embeddings", False)
    rewrite(folder, lambda it: it.pop("lm_head.weight"))
    with pytest.raises(Refused, match=r"tensor 'lm_head\.weight' is missing"):
        convert_folder(str(folder), str(tmp_path / "second.gguf"), "model")


def test_an_index_that_is_not_what_the_files_hold(made, tmp_path):
    folder = shutil.copytree(made / f"{LLAMA.name}-3", tmp_path / "folder")
    index = "model.safetensors.index.json"
    good = (folder / index).read_text()
    places = json.loads(good)["weight_map"]
    other = next(file for file in sorted(set(places.values())) if file != places["model.norm.weight"])
    for tensor, file, says in (
        ("model.norm.weight", "../x.safetensors", "no .safetensors file's name"),
        ("model.norm.weight", 3, "no .safetensors file's name"),
        ("model.norm.weight", other, "is not what the files hold: 'model.norm.weight'"),
        ("more", other, "is not what the files hold: 'more'"),
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


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
def test_whatever_ends_it_leaves_nothing(folder, tmp_path, error):
    size = (folder / "model.safetensors").stat().st_size
    done = []

    def progress(count):
        done.append(count)
        if sum(done) > size * 1.5:
            assert any(name.startswith(".out.gguf") for name in os.listdir(tmp_path))
            raise error

    with pytest.raises((error, FileProblem)):
        convert_folder(str(folder), str(tmp_path / "out.gguf"), "model", progress)
    assert os.listdir(tmp_path) == ["folder"]


def test_an_input_that_changes_meanwhile_is_refused(folder, tmp_path):
    size = (folder / "model.safetensors").stat().st_size

    def grow(count):
        if (folder / "model.safetensors").stat().st_size == size:
            with open(folder / "model.safetensors", "ab") as file:
                file.write(b"x")

    with pytest.raises(Refused, match=r"^model\.safetensors changed while it was converted: refused$"):
        convert_folder(str(folder), str(tmp_path / "out.gguf"), "model", grow)
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("file", "apart"),
    [
        (
            "SmolLM2-135M-Instruct-F16.gguf",
            {f"general.{key}" for key in ("basename", "size_label", "languages", "finetune", "license", "organization")}
            | {"general.name", "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.add_eos_token"}
            # an older converter left them to be computed
            | {"llama.attention.key_length", "llama.attention.value_length"},
        ),
        # Its fim tokens are recorded as user-defined; llama.cpp's converter, and so ours, makes them control tokens.
        (
            "Qw-tiny-F16.gguf",
            {"general.quantization_version", "tokenizer.ggml.token_type", "tokenizer.ggml.add_eos_token"},
        ),
    ],
)
def test_real_models(tmp_path, file, apart):
    original, target = oracle.model(file), tmp_path / file
    folder = make_folder(original, tmp_path / "folder", shards=2)
    convert_folder(str(folder), str(target), file.removesuffix(".gguf"))
    same(original, target, apart)
    shutil.copy(original, tmp_path / "original.gguf")
    prompt = "What is the capital of Norway? 1234 l'été"
    assert answer(tmp_path / "original.gguf", prompt) == answer(target, prompt)
