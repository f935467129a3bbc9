"""Every folder of `synthetic`, converted: the keys and bytes that llama.cpp's own converter was recorded to make."""

import json
from pathlib import Path

import pytest

from bankml.convert.hugging_face.convert import convert_folder
from bankml.errors import Refused
from tests.convert.synthetic import FOLDERS, Folder, contents, write, yarn

RECORDED = json.loads((Path(__file__).parent.parent / "recordings/library/conversion.json").read_text())
# What only describes: how many weights there are, and how a SentencePiece vocabulary, which none of these is, begins.
DESCRIBES = {"general.name", "general.size_label", "tokenizer.ggml.add_space_prefix"}


def decisive(made):
    return {key: value for key, value in made["metadata"].items() if key not in DESCRIBES}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_the_reference_makes_of_it(folder, tmp_path):
    source, target = write(folder, tmp_path / folder.name), tmp_path / "out.gguf"
    convert_folder(str(source), str(target), folder.name)
    recorded, made = RECORDED[folder.name], contents(target)
    assert decisive(made) == decisive(recorded)
    if folder.head_copied:  # it is the embedding again, by which it is then played
        assert recorded["tensors"].pop("output.weight") == recorded["tensors"]["token_embd.weight"]
    assert made["tensors"] == recorded["tensors"]


REFUSED = {
    "dynamic": {"factor": 4.0, "type": "dynamic"},
    "longrope": {"long_factor": [1.0] * 8, "short_factor": [1.0] * 8, "rope_type": "longrope"},
    "beta_fast": yarn(beta_fast=16),
    "attention_factor": yarn(attention_factor=1.5),
    "mscale_all_dim": yarn(mscale_all_dim=1.0),
}


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("says", REFUSED)
def test_positions_that_are_not_played_are_named(tmp_path, architecture, key, says):
    config = {"rope_scaling": ..., key: REFUSED[says]}
    source = write(Folder(says, architecture, config=config), tmp_path / "folder")
    with pytest.raises(Refused, match=says):
        convert_folder(str(source), str(tmp_path / "out.gguf"), says)
