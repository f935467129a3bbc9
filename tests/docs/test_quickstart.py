"""The quick start and the pages on receipts and models, run: each of their blocks, against a server of a model made
here that lies where the demo's does and has its name."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bankml.convert.demo import MODEL
from bankml.library.names import names
from tests.tiny_model import tiny_model

DOCS = Path(__file__).parents[2] / "docs"
BANKML = [sys.executable, "-m", "bankml"]


def blocks(page, section, language):
    text = (DOCS / page).read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A home, and a server of the model in its demo's folder; in the home itself, `model.gguf` is the same model."""
    folder = tmp_path_factory.mktemp("quickstart")
    tiny_model(folder, n_layer=1)
    demo = folder / ".local" / "share" / "bankml" / "demo"
    demo.mkdir(parents=True)
    for target in (folder / "model.gguf", demo / MODEL):
        shutil.copy(folder / "tiny.gguf", target)
        record = (folder / "tiny.gguf.FORK.json").read_text().replace("tiny.gguf", target.name)
        Path(f"{target}.FORK.json").write_text(record)
    (folder / "request.json").write_text(
        '{\n "messages": [{"role": "user", "content": "Say hello."}],\n "max_tokens": 8}\n'
    )
    (folder / "bin").mkdir()
    script = folder / "bin" / "bankml"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bankml "$@"\n')
    script.chmod(0o755)
    (folder / "bin" / "python").symlink_to(sys.executable)
    port, engine = free_port(), free_port()
    words = ["serve", str(demo / MODEL), "--native", "--registry", str(demo)]
    words += ["--listen", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{engine}"]
    with subprocess.Popen([*BANKML, *words], cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        try:
            said = [server.stderr.readline() for _ in range(4)]
            assert [line.split(":")[0] for line in said] == ["parallel", "verified", "listening", "ask"], said
            yield folder, port
        finally:
            server.terminate()
            server.communicate(timeout=20)


@pytest.fixture
def run(house):
    folder, port = house

    def run_one(program, block):
        block = block.replace("127.0.0.1:18093", f"127.0.0.1:{port}")
        environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "BANKML_FORKS": str(folder),
        }
        environment.pop("XDG_DATA_HOME", None)
        command = [*program, block]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run_one


def setting_out():
    """What is typed first."""
    (block,) = re.findall(r"```sh\n(.*?)```", (DOCS / "quickstart.md").read_text().split("\n## ")[0], re.S)
    return block


SHELL = ["bash", "-euo", "pipefail", "-c"]
PYTHON = [sys.executable, "-c"]
needs_curl = pytest.mark.skipif(None in (shutil.which("curl"), shutil.which("bash")), reason="there is no curl or bash")


@needs_curl
def test_curl(run):
    first, others = blocks("quickstart.md", "curl", "sh")
    assert json.loads(run(SHELL, first))["bankml_receipt"]["guard"] == "play"
    assert run(SHELL, others).count('"bankml_receipt"') == 1


@pytest.mark.skipif(find_spec("openai") is None, reason="the openai package is not installed")
def test_openai(run):
    (block,) = blocks("quickstart.md", "openai", "python")
    assert re.search(r"^[0-9a-f]{64}$", run(PYTHON, block), re.M)


@needs_curl
def test_ollama(run):
    (over_the_wire,) = blocks("quickstart.md", "ollama", "sh")
    assert '"bankml_receipt"' in run(SHELL, over_the_wire).splitlines()[-1]
    if find_spec("ollama") is None:
        pytest.skip("the ollama package is not installed")
    (block,) = blocks("quickstart.md", "ollama", "python")
    assert run(PYTHON, block)


@pytest.mark.skipif(None in (shutil.which("cc"), shutil.which("bash")), reason="there is no C compiler or no bash")
def test_c(run, house):
    (program,) = blocks("quickstart.md", "C", "c")
    (house[0] / "app.c").write_text(program)
    (compiling,) = blocks("quickstart.md", "C", "sh")
    answer = json.loads(run(SHELL, setting_out() + compiling).splitlines()[-1])
    assert answer["bankml_receipt"]["guard"] == "play"


@needs_curl
def test_generate(run, house):
    (block,) = blocks("quickstart.md", "Without a server", "sh")
    assert run(SHELL, setting_out() + block)
    (several,) = blocks("command-line.md", "generate", "sh")
    assert "the receipt fits" in run(SHELL, several)


@needs_curl
def test_receipts(run, house):
    (block,) = blocks("receipts.md", "Check one", "sh")[:1]
    assert run(SHELL, block) == "the receipt fits: response_sha256, request_sha256, model_sha256 are true\n"
    by_hand = blocks("receipts.md", "Check one", "sh")[1]
    answer = json.loads((house[0] / "answer.json").read_text())
    assert run(SHELL, by_hand).split()[0] == answer["bankml_receipt"]["response_sha256"]


@needs_curl
def test_a_derived_model(run, house):
    (modelfile,) = blocks("models.md", "Derived models", "")
    (house[0] / "Modelfile").write_text(modelfile.replace("FROM qwen", "FROM model"))
    (block,) = blocks("models.md", "Derived models", "sh")
    assert run(SHELL, block).startswith("brief is derived from model: ")
    layer = json.loads((house[0] / "brief.MODEL.json").read_text())["layer"]
    assert (layer["stop"], layer["parameters"]) == (["END"], {"temperature": 0.2})


@needs_curl
def test_a_model_of_the_demos(run):
    """All but its last line, which would fetch the demo's model; its like is being served here, with that registry."""
    (block,) = blocks("models.md", "A model of the demo's", "sh")
    *making, serving = block.splitlines()
    assert run(SHELL, "\n".join(making)).startswith("pirate is derived from smollm2-135m-instruct.q4_1: ")
    assert serving == "bankml demo --registry ~/.local/share/bankml/demo"
    asked = blocks("quickstart.md", "curl", "sh")[0].replace('{"messages"', '{"model": "pirate", "messages"')
    assert json.loads(run(SHELL, asked))["model"] == "pirate"


def test_the_demo_has_these_names():
    assert f"/demo/{MODEL}\n" in setting_out()
    said = (DOCS / "quickstart.md").read_text()
    assert "smollm2-135m-instruct" in names(MODEL) and said.count("`smollm2-135m-instruct`") == 1
