"""The quick start and the page on receipts, run: each of their blocks, against a server of a model made here."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from bankml.library.demo import MODEL
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
    """A folder with `model.gguf`, its record and a `bankml` on the path; and a server of it."""
    folder = tmp_path_factory.mktemp("quickstart")
    tiny_model(folder, n_layer=1)
    (folder / "tiny.gguf").rename(folder / "model.gguf")
    record = (folder / "tiny.gguf.FORK.json").read_text().replace("tiny.gguf", "model.gguf")
    (folder / "model.gguf.FORK.json").write_text(record)
    (folder / "request.json").write_text(
        '{\n "messages": [{"role": "user", "content": "Say hello."}],\n "max_tokens": 8}\n'
    )
    (folder / "bin").mkdir()
    script = folder / "bin" / "bankml"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bankml "$@"\n')
    script.chmod(0o755)
    (folder / "bin" / "python").symlink_to(sys.executable)
    port, engine = free_port(), free_port()
    words = ["serve", "model.gguf", "--native", "--listen", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{engine}"]
    with subprocess.Popen([*BANKML, *words], cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        try:
            said = [server.stderr.readline() for _ in range(3)]
            assert [line.split(":")[0] for line in said] == ["verified", "listening", "ask"], said
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
            "BANKML_FORKS": str(folder),
        }
        command = [*program, block]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run_one


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


def ollama_answers(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/version") as answer:
            return answer.status == 200
    except OSError:
        return False


@needs_curl
def test_ollama(run, house):
    if not ollama_answers(house[1]):
        pytest.skip("Ollama's API is not answered yet")
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
    answer = json.loads(run(SHELL, compiling + "./app").splitlines()[-1])
    assert answer["bankml_receipt"]["guard"] == "play"


@needs_curl
def test_generate(run, house):
    (block,) = blocks("quickstart.md", "Without a server", "sh")
    assert run(SHELL, block)
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
    assert run(SHELL, block).startswith("brief is made of model: ")
    layer = json.loads((house[0] / "brief.MODEL.json").read_text())["layer"]
    assert (layer["stop"], layer["parameters"]) == (["END"], {"temperature": 0.2})


def test_a_model_of_the_demos(run, house, tmp_path, monkeypatch):
    """All but its last line, which would fetch the demo's model and serve it."""
    demo = tmp_path / ".local" / "share" / "bankml" / "demo"
    demo.mkdir(parents=True)
    for name in ("model.gguf", "model.gguf.FORK.json"):
        content = (house[0] / name).read_bytes().replace(b"model.gguf", MODEL.encode())
        (demo / name.replace("model.gguf", MODEL)).write_bytes(content)
    monkeypatch.setenv("HOME", str(tmp_path))
    (block,) = blocks("models.md", "A model of the demo's", "sh")
    *making, serving = block.splitlines()
    assert run(SHELL, "\n".join(making)).startswith("pirate is made of smollm2-135m-instruct-f16: ")
    assert json.loads((demo / "pirate.MODEL.json").read_text())["layer"]["system"] == "You are a pirate."
    (option,) = (word for word in serving.split() if word.startswith("~"))
    assert serving.startswith("bankml demo --registry ") and os.path.expanduser(option) == str(demo)
