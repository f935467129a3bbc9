"""`bankml create` as it is typed: from a name, a pinned file, and a folder of safetensors."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from hashlib import sha256

import pytest

from bankml.cli import main
from bankml.gate.verify import verify
from bankml.library.load import LoadOptions, load
from bankml.library.registry import Registry
from tests.convert.hf_folder import make_folder
from tests.end_to_end import tiny
from tests.library.folders import pin, templated

MODEL = tiny.MODELS[0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of safetensors."""
    where = tmp_path_factory.mktemp("saved")
    tiny.write(where / "model.gguf", MODEL)
    return make_folder(where / "model.gguf", where / "Tiny.Model v2", shards=2)


@pytest.fixture
def forks(tmp_path):
    """A registry with one pinned file."""
    folder = tmp_path / "forks"
    folder.mkdir()
    templated(folder / "base.gguf")
    pin(folder, "base.gguf")
    return folder


@pytest.fixture
def run(capfd, tmp_path, forks, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run_one(name, modelfile, *more, registry=forks):
        (tmp_path / "Modelfile").write_text(modelfile)
        code = main(["create", name, "-f", "Modelfile", "--registry", str(registry), *map(str, more)])
        out, err = capfd.readouterr()
        return code, out, err

    return run_one


def test_from_a_name(run, forks):
    path = forks / "mario.MODEL.json"
    assert run("Mario", "FROM base\nSYSTEM It's-a me!\n") == (0, f"mario is derived from base: {path}\n", "")
    assert Registry(str(forks)).resolve("mario").layer.system == "It's-a me!"
    assert run("son:v1", "FROM mario\nPARAMETER seed 3")[0] == 0
    assert json.loads((forks / "son:v1.MODEL.json").read_text())["layer"]["system"] == "It's-a me!"


def test_the_registry_is_the_environments(run, forks, monkeypatch, capfd, tmp_path):
    monkeypatch.setenv("BANKML_FORKS", str(forks))
    (tmp_path / "Modelfile").write_text("FROM base")
    assert main(["create", "mario", "--file", "Modelfile"]) == 0
    assert (forks / "mario.MODEL.json").exists()


def test_from_a_pinned_file(run, forks, tmp_path):
    assert run("mario", "FROM base.gguf")[0] == 0  # a name: no such file is here
    assert run("mario", "FROM ./forks/base.gguf")[0] == 0
    assert run("mario", f"FROM {forks / 'base.gguf'}")[0] == 0
    templated(tmp_path / "other.gguf")
    code, _, err = run("mario", "FROM ./other.gguf")
    assert code == 2 and err.startswith("refuse: other.gguf has no sha256 record in FORK.json: unpinned, refused (")
    shutil.copy(forks / "base.gguf", tmp_path / "base.gguf")
    code, _, err = run("mario", "FROM ./base.gguf")
    assert code == 1 and f"is not where the registry finds base.gguf: {forks / 'base.gguf'};" in err
    os.unlink(forks / "base.gguf")
    code, _, err = run("luigi", "FROM ./base.gguf")
    assert code == 1 and err.endswith(f"not in {forks}, the folder of its record: give --models {tmp_path}\n")
    code, _, err = run("luigi", "FROM base")
    assert code == 2 and f"is not in {forks}: refused (--models DIR names its folder)" in err
    assert run("luigi", "FROM base", "--models", tmp_path)[0] == 0
    assert run("luigi", "FROM ./base.gguf", "--models", tmp_path)[0] == 0
    templated(tmp_path / "base.gguf", "changed")
    code, _, err = run("luigi", "FROM ./base.gguf", "--models", tmp_path)
    assert code == 2 and err.startswith("refuse: base.gguf sha256 ") and " != pinned " in err


def test_from_a_folder(run, forks, saved, tmp_path):
    shutil.copytree(saved, tmp_path / saved.name)
    file = "Tiny.Model-v2-F16.gguf"
    code, out, err = run("pirate", f'FROM "./{saved.name}"\nSYSTEM Arr.')
    assert (code, out) == (0, f"pirate is derived from tiny.model-v2-f16: {forks / 'pirate.MODEL.json'}\n")
    assert err.splitlines()[0] == f"converting {tmp_path / saved.name} to F16: {forks / file}"
    assert err.splitlines()[1].startswith(f"pinned {file} sha256 ")
    record = json.loads((forks / f"{file}.FORK.json").read_text())
    assert record["files"][0]["bytes"] == (forks / file).stat().st_size
    inputs = {one["path"]: one for one in record["converted"]["inputs"]}
    assert inputs.keys() == set(os.listdir(saved))
    for name, one in inputs.items():
        content = (saved / name).read_bytes()
        assert (one["bytes"], one["sha256"]) == (len(content), sha256(content).hexdigest())
    reference = Registry(str(forks)).resolve("pirate")
    assert reference.layer.system == "Arr." and reference.source.name == "tiny.model-v2-f16"
    resident = load(verify(reference.source.path, reference.source.fork), LoadOptions(256))
    assert resident.template.source == tiny.TEMPLATE
    resident.engine.close()
    # Again, the converted file is used; after a change of the folder nothing is written over.
    before = (forks / f"{file}.FORK.json").read_bytes()
    code, out, err = run("second", f"FROM {saved}")
    assert (code, out) == (0, f"second is derived from tiny.model-v2-f16: {forks / 'second.MODEL.json'}\n")
    assert err == f"{saved} is converted already: {forks / file}\n"
    changed = tmp_path / saved.name
    (changed / "config.json").write_text((changed / "config.json").read_text() + "\n")
    code, _, err = run("third", f"FROM ./{saved.name}")
    assert code == 1 and "is pinned already" in err and "use FROM tiny.model-v2-f16" in err
    assert (forks / f"{file}.FORK.json").read_bytes() == before


def test_a_name_is_a_models_before_it_is_a_folders(run, forks, tmp_path):
    tiny.write(tmp_path / "model.gguf", MODEL)
    make_folder(tmp_path / "model.gguf", tmp_path / "base", shards=1)
    assert run("mario", "FROM base")[0] == 0
    assert Registry(str(forks)).resolve("mario").source.file == "base.gguf"
    (tmp_path / "base" / "adapter_model.safetensors").write_bytes(b"")  # model.safetensors holds the weights
    assert run("luigi", "FROM ./base")[0] == 0
    assert Registry(str(forks)).resolve("luigi").source.file == "base-F16.gguf"


def test_a_file_of_a_folder_is_not_a_model(run, saved):
    code, _, err = run("mario", f"FROM {saved}/model-00001-of-00002.safetensors")
    assert code == 1 and err.endswith(f"a model in Hugging Face's format is its folder: FROM {saved}\n")


def test_convert_of_a_folder_names_create(saved, capfd, tmp_path):
    assert main(["convert", str(saved), "-o", str(tmp_path / "o.gguf"), "--outtype", "f16"]) == 1
    assert "is a folder: `bankml create NAME -f Modelfile` converts it" in capfd.readouterr().err


def test_a_folder_under_its_own_name_needs_no_manifest(run, forks, saved, tmp_path):
    models = tmp_path / "models"
    code, _, err = run("tiny.model-v2", f"FROM {saved}\nSYSTEM x", "--models", models)
    assert code == 1 and "is the name of the converted file Tiny.Model-v2-F16.gguf itself" in err
    assert not models.exists()
    code, out, _ = run("tiny.model-v2", f"FROM {saved}", "--models", models)
    assert (code, out) == (0, f"tiny.model-v2-f16 is ready: {models / 'Tiny.Model-v2-F16.gguf'}\n")
    assert sorted(os.listdir(forks)) == ["Tiny.Model-v2-F16.gguf.FORK.json", "base.gguf", "base.gguf.FORK.json"]
    assert os.listdir(models) == ["Tiny.Model-v2-F16.gguf"]


def test_a_name_the_converted_file_shares_is_a_derived_models(run, forks, saved):
    """tiny.model-v2 would be the short name of both files, so it is neither's."""
    templated(forks / "Tiny.Model-v2-Q1_0.gguf")
    pin(forks, "Tiny.Model-v2-Q1_0.gguf")
    code, _, err = run("tiny.model-v2", f"FROM {saved}")
    assert code == 1 and "is the name of a pinned file" in err
    pin(forks, "other.gguf", "Tiny.Model-v2-Q2_0.gguf")
    assert run("tiny.model-v2", f"FROM {saved}")[0] == 0
    assert Registry(str(forks)).resolve("tiny.model-v2").source.file == "Tiny.Model-v2-F16.gguf"


def test_a_conversion_hides_no_derived_model(run, forks, saved):
    assert run("tiny.model-v2", "FROM base")[0] == 0
    code, _, err = run("pirate", f"FROM {saved}")
    assert code == 1 and f"{forks / 'tiny.model-v2.MODEL.json'} exists: move it away first" in err


@pytest.mark.parametrize(
    ("name", "modelfile", "code", "says"),
    [
        ("../x", "FROM base", 1, "error: the model name '../x' contains a slash: "),
        ("a..b", "FROM base", 1, "error: the model name 'a..b' contains '..'"),
        ("a\x01", "FROM base", 1, "error: the model name 'a\\x01' contains the character"),
        ("base", "FROM base", 1, "error: 'base' is the name of a pinned file"),
        ("x", "FROM none", 1, "error: unknown model 'none'; this server serves 'base'"),
        ("x", "FROM base\nADAPTER y", 1, "error: Modelfile line 2: ADAPTER is refused"),
        ("x", "FROM base\nTEMPLATE y", 1, "error: the TEMPLATE is not the one in base.gguf"),
        ("x", "SYSTEM y", 1, "error: the Modelfile has no FROM line"),
        ("x", "FROM ./none", 1, "error: cannot read "),
        ("base", "FROM ./empty/", 1, "error: 'base' is the name of a pinned file"),
        ("x", "FROM ./empty/", 1, "error: cannot read "),
    ],
)
def test_what_is_refused(run, forks, tmp_path, name, modelfile, code, says):
    (tmp_path / "empty").mkdir()
    before = sorted(os.listdir(forks))
    got, out, err = run(name, modelfile)
    assert (got, out) == (code, "") and err.splitlines()[-1].startswith(says)
    assert sorted(os.listdir(forks)) == before


def test_no_modelfile(capfd, tmp_path):
    assert main(["create", "x", "-f", str(tmp_path / "none")]) == 1
    assert main(["create", "x"]) == 1
    assert "-f/--file" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_half_written(saved, forks, tmp_path, number):
    """A matrix so long that its conversion can be interrupted; the file is sparse."""
    folder = tmp_path / "big"
    shutil.copytree(saved, folder)
    for name in os.listdir(folder):
        if "safetensors" in name:
            os.unlink(folder / name)
    config = json.loads((folder / "config.json").read_text())
    d, n_ff = config["hidden_size"], 1 << 20
    config |= {"intermediate_size": n_ff, "num_hidden_layers": 1}
    (folder / "config.json").write_text(json.dumps(config))
    part = "model.layers.0."
    width, kv = (config[key] * config["head_dim"] for key in ("num_attention_heads", "num_key_value_heads"))
    shapes = {
        "model.embed_tokens.weight": [config["vocab_size"], d],
        "model.norm.weight": [d],
        f"{part}input_layernorm.weight": [d],
        f"{part}post_attention_layernorm.weight": [d],
        f"{part}self_attn.q_proj.weight": [width, d],
        f"{part}self_attn.k_proj.weight": [kv, d],
        f"{part}self_attn.v_proj.weight": [kv, d],
        f"{part}self_attn.o_proj.weight": [d, width],
        f"{part}mlp.gate_proj.weight": [n_ff, d],
        f"{part}mlp.up_proj.weight": [n_ff, d],
        f"{part}mlp.down_proj.weight": [d, n_ff],
    }
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + at)
    (tmp_path / "Modelfile").write_text("FROM ./big\n")
    before = sorted(os.listdir(forks))
    command = [sys.executable, "-m", "bankml", "create", "x", "-f", "Modelfile", "--registry", str(forks)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        while not any(part.stat().st_size for part in forks.glob(".making-*/.*.part")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == (130 if number == signal.SIGINT else 143), process.stderr.read()
    assert sorted(os.listdir(forks)) == before
