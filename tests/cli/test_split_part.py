"""The first part of a model that was split: its pin says nothing of the others."""

import subprocess
import sys

import numpy as np

from bankml.gguf.block_types import F32
from bankml.gguf.values import ValueType
from bankml.gguf.writer import encode_value, writing
from tests.end_to_end.servers import free_port
from tests.tiny_model import N_FF, entries, tensors


def write_part(path):
    specs = tensors(1, N_FF)
    keys = [*entries(1, 256, N_FF), ("split.count", encode_value(ValueType.UINT16, 3))]
    with writing(path, [*keys, ("split.no", encode_value(ValueType.UINT16, 0))], specs) as out:
        for spec in specs:
            out.write(np.ones(spec.shape, np.float32 if spec.type is F32 else np.float16).tobytes())


def test_one_part_of_a_split_model_is_refused_by_every_command_that_opens_models(tmp_path):
    part, fork, out = tmp_path / "m-00001-of-00003.gguf", tmp_path / "FORK.json", tmp_path / "out.gguf"
    write_part(part)
    bankml = [sys.executable, "-m", "bankml"]
    subprocess.run([*bankml, "pin", part, "--fork", fork, "--record"], check=True, capture_output=True)
    addresses = ["--listen", f"127.0.0.1:{free_port()}", "--upstream", f"127.0.0.1:{free_port()}"]
    for command in (
        ["convert", part, "-o", out, "--outtype", "f16"],
        ["generate", part, "--fork", fork],
        ["serve", part, "--fork", fork, "--native", *addresses],
        ["serve", part, "--fork", fork, "--spawn", "/bin/true", *addresses],
        ["serve", part, "--fork", fork, *addresses],
    ):
        done = subprocess.run([*bankml, *command], input="hi", capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "one of 3 parts of a split model" in done.stderr, (command, done.stderr)
    assert not out.exists()
