"""Folders to convert: models taken apart, and one of them to spoil."""

import shutil

import pytest

from tests.convert.hf_folder import LLAMA, QWEN3, make_folder
from tests.end_to_end import tiny


@pytest.fixture(scope="session")
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
