"""Llama 3's folders: its scaling of positions as a tensor, its pre-tokenizer, and a token before each text."""

import json
from hashlib import sha256

import numpy as np
import pytest

from bankml.convert.hugging_face.fields import JsonConfig
from bankml.convert.hugging_face.rope_factors import llama3_factors
from bankml.convert.hugging_face.tokenizer import LLAMA3_PATTERN, PRETOKENIZERS, added_around, pretokenizer
from bankml.errors import Refused
from bankml.gguf.header import read_header
from bankml.model.config import read_config
from tests.convert.hf_folder import LLAMA, converted, edit, make_folder, tensors_of
from tests.end_to_end import tiny

SCALING = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}


@pytest.mark.parametrize(
    ("factor", "head_size", "digest"),
    [
        (8.0, 128, "8b516af9cb5db26ed32831eb6f493dd620843d1cd69ca7bbad760c76061cd565"),  # Llama 3.1
        (32.0, 64, "d25a6d176d9313062b8f86440c88649f9e568d573ea66bfa4e85e2424cf35633"),  # Llama 3.2
        (32.0, 128, "af00a6286e9cba87733f6e5dd6b09a2bffd7326e6ac33d346f83f7c2f4857828"),
    ],
)
def test_factors_are_the_converters(factor, head_size, digest):
    """The digests are those of what llama.cpp's converter computes with PyTorch."""
    given = JsonConfig("config.json", SCALING | {"factor": factor})
    factors = llama3_factors(given, 500000.0, head_size)
    assert factors.dtype == np.float32 and factors.shape == (head_size // 2,)
    assert factors[0] == 1 and factors[-1] == factor
    assert sha256(factors.tobytes()).hexdigest() == digest


@pytest.fixture
def folder(tmp_path):
    tiny.write(tmp_path / "tiny.gguf", LLAMA)
    made = make_folder(tmp_path / "tiny.gguf", tmp_path / "folder")
    (tmp_path / "tiny.gguf").unlink()
    return made


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_a_scaled_folder(folder, tmp_path, key):
    edit(folder, "config.json", key, SCALING)
    out = converted(folder, tmp_path)
    header = read_header(out)
    assert header.tensors[0].name == "rope_freqs.weight"
    assert [name for name in header.metadata if "rope.scaling" in name] == []
    config = read_config(header)
    base = float(header.metadata["llama.rope.freq_base"])
    expected = llama3_factors(JsonConfig("config.json", SCALING), base, config.head_size)
    assert tensors_of(out)["rope_freqs.weight"][1] == expected.tobytes()


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("factor", None, "factor is missing"),
        ("low_freq_factor", 0, "low_freq_factor is 0"),
        ("high_freq_factor", 1.0, "high_freq_factor is not larger than low_freq_factor"),
        ("original_max_position_embeddings", None, "original_max_position_embeddings is missing"),
        ("mscale", 1.0, "mscale is 1.0, which is unsupported"),
    ],
)
def test_scalings_that_are_refused(folder, tmp_path, field, value, says):
    edit(folder, "config.json", "rope_scaling", {**SCALING, field: value})
    with pytest.raises(Refused, match=says):
        converted(folder, tmp_path)


def with_llama3_tokenizer(folder, **more):
    bos = json.loads((folder / "tokenizer.json").read_text())["added_tokens"][0]["content"]
    first, second = ({"SpecialToken": {"id": bos, "type_id": number}} for number in (0, 1))
    one, other = ({"Sequence": {"id": name, "type_id": number}} for number, name in enumerate("AB"))
    template = {"type": "TemplateProcessing", "single": [first, one], "pair": [first, one, second, other]}
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    edit(folder, "tokenizer.json", "pre_tokenizer", "pretokenizers", PRETOKENIZERS["llama-bpe"].steps)
    edit(folder, "tokenizer.json", "model", "ignore_merges", True)
    edit(folder, "tokenizer.json", "post_processor", {"type": "Sequence", "processors": [level, template]} | more)
    edit(folder, "tokenizer_config.json", "bos_token", bos)
    return bos


def test_a_tokenizer(folder, tmp_path):
    bos = with_llama3_tokenizer(folder)
    found = read_header(converted(folder, tmp_path)).metadata
    assert found["tokenizer.ggml.pre"] == "llama-bpe"
    assert found["tokenizer.ggml.tokens"][found["tokenizer.ggml.bos_token_id"]].decode() == bos
    added = {name: value for name, value in found.items() if name.startswith("tokenizer.ggml.add_")}
    assert list(added.items()) == [
        ("tokenizer.ggml.add_bos_token", True),
        ("tokenizer.ggml.add_eos_token", False),
        ("tokenizer.ggml.add_sep_token", False),
    ]


def added(post_processor, **settings):
    return added_around(
        JsonConfig("tokenizer.json", {"post_processor": post_processor}), JsonConfig("c.json", settings)
    )


ONE = {"Sequence": {"id": "A", "type_id": 0}}


def test_what_is_added_around_a_text():
    first = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    level, plain = {"type": "ByteLevel"}, {"type": "TemplateProcessing", "single": [ONE]}
    before = {"type": "TemplateProcessing", "single": [first, ONE]}
    assert added(None) == {}
    assert added(None, add_bos_token=True) == {"bos": True}
    assert added(level, add_bos_token=True) == {"bos": False, "eos": False}
    assert added(plain, add_eos_token=False) == {"eos": False}
    assert added(before, bos_token="<s>", add_bos_token=False) == {"bos": True}
    assert added({"type": "Sequence", "processors": [before, level]}, bos_token={"content": "<s>"}) == {
        "bos": True,
        "eos": False,
    }
    for bad in (before, {**before, "single": [ONE, first]}, {"type": "RobertaProcessing"}, [], "x"):
        with pytest.raises(Refused, match="adds more than bos_token"):
            added(bad, bos_token="<other>")
    with pytest.raises(Refused, match="add_eos_token or add_sep_token is true"):
        added(None, add_eos_token=True)


def test_one_pattern_is_of_two_pre_tokenizers():
    def name(**model):
        split = {"type": "Split", "pattern": {"Regex": LLAMA3_PATTERN}, "behavior": "Isolated", "invert": False}
        steps = [split, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]
        found = {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}, "model": model}
        return pretokenizer(JsonConfig("tokenizer.json", found))

    assert [name(ignore_merges=True), name(ignore_merges=False), name()] == ["llama-bpe", "dbrx", "dbrx"]
