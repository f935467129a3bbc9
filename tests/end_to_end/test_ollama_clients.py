"""Ollama's own clients, for Python and for Node, against a running server with tiny models."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import ollama
import pytest

from bankml.receipt.check import check
from tests.end_to_end.servers import ask, exchange, free_port, waiting
from tests.end_to_end.tiny import MODELS, write

LLAMA, QWEN = "tiny-llama-f16", "tiny-qwen3-f16"


def latest(*names):
    """The names as Ollama lists them."""
    return [f"{name}:latest" for name in names]


MESSAGES = [{"role": "user", "content": "where is the rain?"}]
GREEDY = {"temperature": 0, "num_predict": 12}
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
HELD = {"temperature": 0, "num_predict": 60}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The gateway's port, the engine's, and the registry of a server over two models."""
    folder = tmp_path_factory.mktemp("registry")
    bankml = [sys.executable, "-m", "bankml"]
    for tiny in MODELS[:2]:
        path = folder / f"{tiny.name}.gguf"
        write(path, tiny)
        pin = [*bankml, "pin", str(path), "--fork", f"{path}.FORK.json", "--record"]
        subprocess.run(pin, check=True, capture_output=True)
    gate, engine = free_port(), free_port()
    where = ["--listen", f"127.0.0.1:{gate}", "--upstream", f"127.0.0.1:{engine}", "--ctx", "512"]
    with open(folder / "log", "wb") as log:
        command = [*bankml, "serve", str(folder / f"{LLAMA}.gguf"), "--native", "--registry", str(folder), *where]
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "BANKML_CACHE_RAM": "0"})
    try:
        waiting(gate, process)
        yield gate, engine, folder
    finally:
        process.terminate()
        assert process.wait(10) in (0, -15)


@pytest.fixture
def client(served):
    return ollama.Client(f"http://127.0.0.1:{served[0]}")


def test_python_lists_shows_and_tells_what_is_running(client):
    assert [model.model for model in client.list().models] == latest(LLAMA, QWEN)
    shown = client.show(QWEN)
    assert shown.modelinfo["general.architecture"] == shown.details.family == "qwen3"
    assert shown.capabilities == ["completion"] and "<|im_start|>" in shown.template
    client.chat(QWEN, keep_alive="10m")
    (running,) = client.ps().models
    assert (running.model, running.context_length) == (f"{QWEN}:latest", 512) and running.size_vram == 0
    assert running.digest == client.list().models[1].digest and running.size > 0


def test_python_chats(client):
    whole = client.chat(LLAMA, messages=MESSAGES, options=GREEDY)
    assert whole.done and whole.done_reason == "length" and whole.eval_count == 12 and whole.message.role == "assistant"
    assert 0 < whole.eval_duration < whole.total_duration
    parts = list(client.chat(LLAMA, messages=MESSAGES, options=GREEDY, stream=True))
    assert "".join(part.message.content for part in parts) == whole.message.content != ""
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True] and len(parts) > 3
    assert parts[-1].eval_count == 12 and parts[-1].prompt_eval_count == whole.prompt_eval_count


def test_python_generates(client):
    whole = client.generate(LLAMA, "the rain", system="Speak.", options=ollama.Options(**GREEDY))
    parts = list(client.generate(LLAMA, "the rain", system="Speak.", options=GREEDY, stream=True))
    assert "".join(part.response for part in parts) == whole.response != ""
    raw = client.generate(LLAMA, "the rain", raw=True, options=GREEDY)
    assert raw.prompt_eval_count < whole.prompt_eval_count and raw.eval_count == 12


@pytest.mark.parametrize("format_", ["json", SCHEMA])
def test_python_gets_json(client, format_):
    for stream in (False, True):
        said = client.chat(LLAMA, messages=MESSAGES, format=format_, options=HELD, stream=stream)
        text = "".join(part.message.content for part in said) if stream else said.message.content
        generated = client.generate(LLAMA, "the rain", format=format_, options=HELD, stream=stream)
        other = "".join(part.response for part in generated) if stream else generated.response
        for value in map(json.loads, (text, other) if format_ == SCHEMA else ()):
            assert isinstance(value["a"], bool)
        assert text.lstrip().startswith("{") and other.lstrip().startswith("{")


def test_python_gets_the_tokens_probabilities(client):
    said = client.chat(LLAMA, messages=MESSAGES, options=GREEDY, logprobs=True, top_logprobs=3)
    assert len(said.logprobs) > 3 and all(len(entry.top_logprobs) == 3 for entry in said.logprobs)
    assert all(entry.logprob == entry.top_logprobs[0].logprob <= 0 for entry in said.logprobs)
    alone = client.generate(LLAMA, "the rain", options=GREEDY, logprobs=True)
    assert alone.logprobs and not any(entry.top_logprobs for entry in alone.logprobs)
    streamed = list(client.chat(LLAMA, messages=MESSAGES, options=GREEDY, logprobs=True, top_logprobs=3, stream=True))
    assert streamed[0].logprobs[0] == said.logprobs[0]


def test_python_makes_copies_and_deletes(client):
    made = client.create(
        "rain-man", from_=LLAMA, system="Be brief.", parameters={**GREEDY, "stop": ["%"]}, license="MIT"
    )
    assert made.status == "success"
    steps = [step.status for step in client.create("rain-man", from_=LLAMA, system="Be brief.", stream=True)]
    assert steps[-1] == "success" and len(steps) > 1
    assert client.copy("rain-man", "rain-twin").status == "success"
    assert set(latest("rain-man", "rain-twin")) <= {model.model for model in client.list().models}
    assert "SYSTEM Be brief." in client.show("rain-twin").modelfile
    talk = [{"role": "system", "content": "Be brief."}, *MESSAGES]
    mine = client.chat("rain-twin", messages=MESSAGES, options=GREEDY)
    assert mine.message.content == client.chat(LLAMA, messages=talk, options=GREEDY).message.content
    for name in ("rain-man", "rain-twin"):
        assert client.delete(name).status == "success"
    assert [model.model for model in client.list().models] == latest(LLAMA, QWEN)


def test_python_is_told_what_was_wrong(client):
    for call, status, why in (
        (lambda: client.chat("nobody", messages=MESSAGES), 404, "unknown model 'nobody'"),
        (lambda: client.chat(LLAMA, messages=MESSAGES, options={"mirostat": 3}), 400, "mirostat"),
        (lambda: client.generate(LLAMA, "x", suffix="y"), 501, "Infill is not supported"),
        (lambda: client.embed(LLAMA, "x"), 501, "embeddings"),
        (lambda: client.pull("llama3"), 501, "models are not downloaded"),
        (lambda: client.push(LLAMA), 501, "nothing is uploaded"),
        (lambda: client.create("../up", from_=LLAMA), 400, "slash"),
        (lambda: client.create("x", from_="nobody"), 404, "nobody"),
        (lambda: client.create("x", from_=LLAMA, quantize="q4_0"), 400, "'quantize'"),
        (lambda: client.create_blob(__file__), 501, "no files are taken in"),
        (lambda: client.copy("nobody", "x"), 404, "nobody"),
        (lambda: client.delete("nobody"), 404, "nobody"),
        (lambda: client.show("nobody"), 404, "nobody"),
    ):  # fmt: skip
        with pytest.raises(ollama.ResponseError) as found:
            call()
        assert found.value.status_code == status and why in found.value.error


def test_python_loads_and_unloads(client):
    assert client.generate(QWEN, keep_alive="1h").done_reason == "load"
    assert [model.model for model in client.ps().models] == latest(QWEN)
    assert client.chat(QWEN, keep_alive=0).done_reason == "unload"
    assert list(client.ps().models) == []
    assert client.chat(LLAMA, keep_alive=-1).done_reason == "load"
    assert client.ps().models[0].expires_at.year > 2300


def test_a_model_whose_time_is_up_goes_by_itself(client):
    assert client.chat(LLAMA, messages=MESSAGES, options=GREEDY, keep_alive=0.2).done
    until = time.monotonic() + 10
    while client.ps().models and time.monotonic() < until:
        time.sleep(0.05)
    assert list(client.ps().models) == []
    assert client.chat(LLAMA, messages=MESSAGES, options=GREEDY).load_duration > 0


def test_pythons_asynchronous_client_streams_what_the_other_gets(served, client):
    async def talk():
        other = ollama.AsyncClient(f"http://127.0.0.1:{served[0]}")
        return [part async for part in await other.chat(LLAMA, messages=MESSAGES, options=GREEDY, stream=True)]

    said = "".join(part.message.content for part in asyncio.run(talk()))
    assert said == client.chat(LLAMA, messages=MESSAGES, options=GREEDY).message.content


TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "where is the rain?"},
    {"role": "assistant", "content": "on the roof"},
    {"role": "user", "content": "and the wind?"},
]


@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {"seed": 7, "temperature": 0.9, "top_k": 9, "repeat_penalty": 1.2}]
)
def test_one_conversation_is_one_answer_on_every_api_and_address(served, options):
    """The same text, counts and cache reuse, turn after turn, whichever way each turn is asked."""
    gate, engine, _ = served

    def v1(port, messages, stream):
        body = {"model": LLAMA, "messages": messages, "max_tokens": 12, **options}
        value = json.loads(ask(port, "/v1/chat/completions", body)[1])
        counts = value["usage"]["prompt_tokens"], value["usage"]["completion_tokens"], value["timings"]["cache_n"]
        return value["choices"][0]["message"]["content"], value["choices"][0]["finish_reason"], counts

    def api(port, messages, stream):
        body = {"model": LLAMA, "messages": messages, "stream": stream, "options": {"num_predict": 12, **options}}
        sent = json.dumps(body).encode()
        status, _, data = exchange(port, "POST", "/api/chat", sent)
        checked = check(sent, data)
        assert status == 200 and checked.problems == ()
        last = json.loads(data.splitlines()[-1])
        return (
            checked.text,
            last["done_reason"],
            (last["prompt_eval_count"], last["eval_count"], last["bankml_cache_n"]),
        )

    def conversation(answer, port, stream=False):
        exchange(gate, "POST", "/api/chat", json.dumps({"model": LLAMA, "keep_alive": 0}).encode())
        turns = [TALK[:2], TALK, [*TALK, {"role": "assistant", "content": "gone"}, *MESSAGES], TALK]
        return [answer(port, list(turn), stream) for turn in turns]

    wanted = conversation(v1, gate)
    assert wanted[1][2][2] > 0 and wanted[3][2][2] > wanted[1][2][2]
    assert conversation(v1, engine) == conversation(api, gate) == conversation(api, gate, True) == wanted


@pytest.fixture(scope="session")
def node_modules(pytestconfig):
    """A folder where `import "ollama"` finds the npm client."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node and npm here")
    folder = Path(pytestconfig.cache.mkdir("ollama-npm"))
    if not (folder / "node_modules/ollama").is_dir():
        quiet = [
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--loglevel=error",
            "--fetch-retries=1",
            "--fetch-timeout=20000",
        ]
        install = ["npm", "install", "--prefix", str(folder), *quiet, "ollama@0.6"]
        done = subprocess.run(install, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install ollama: {done.stderr.strip().splitlines()[-1:]}")
    return folder


def test_the_npm_client(served, client, node_modules):
    gate, _, _ = served
    script = Path(shutil.copy(Path(__file__).parent / "ollama_client.mjs", node_modules))
    done = subprocess.run(
        ["node", str(script), f"http://127.0.0.1:{gate}", LLAMA, QWEN],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    whole = client.chat(LLAMA, messages=MESSAGES, options=GREEDY).message.content
    generated = client.generate(LLAMA, "the rain", options=GREEDY).response
    assert said["listed"] == latest(LLAMA, QWEN) and said["family"] == "qwen3" and said["running"] == latest(QWEN)
    assert said["chat"] == said["streamedChat"] == whole and said["generate"] == said["streamedGenerate"] == generated
    assert isinstance(json.loads(said["schema"])["a"], bool)
    assert said["created"] == "success" and said["steps"][-1] == "success" and said["system"] == "Be brief."
    assert said["withTwin"] == latest(LLAMA, QWEN, "npm-man", "npm-twin") and said["after"] == latest(LLAMA, QWEN)
    assert said["unload"] == "unload" and said["load"] == "load"
    assert said["errors"] == [[400, True], [404, True], [501, True]]
