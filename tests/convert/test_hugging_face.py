"""Models taken apart into safetensors folders and converted back: the same bits, the same answers."""

import json
import os
import shutil
import tracemalloc
from hashlib import sha256

import numpy as np
import pytest
from safetensors.numpy import load_file

from bankml.convert.hugging_face.convert import convert_folder
from bankml.engine.completion import Job
from bankml.errors import FileProblem, Refused
from bankml.gate.verify import record, verify
from bankml.gguf.header import read_header
from bankml.library.load import LoadOptions, load
from bankml.sampling.overrides import SamplingOverrides
from bankml.text.messages import Conversation
from tests import oracle
from tests.convert.hf_folder import LLAMA, QWEN3, converted, edit, make_folder, rewrite, tensors_of
from tests.end_to_end import tiny


def answer(path, prompt, count=24):
    fork = f"{path}.FORK.json"
    record(path, fork)
    resident = load(verify(path, fork), LoadOptions(512))
    try:
        conversation = Conversation.of([{"role": "user", "content": prompt}])
        tokens = resident.tokens.encode(resident.answer_format(conversation).prompt)
        steps = resident.engine.complete(
            Job(tokens, count),
            resident.sampler(SamplingOverrides(temperature=0.0)),
            resident.text_stream(()),
        )
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


def test_nothing_is_made_for_a_number_that_the_weights_do_not_bear_out(folder, tmp_path):
    edit(folder, "config.json", "vocab_size", 1 << 24)
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match="expected \\[16777216, 128\\]"):
            converted(folder, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


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
