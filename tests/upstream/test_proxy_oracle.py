"""In front of the real llama-server that `make oracle` builds, with a small model.

The model is Qw-tiny-F16.gguf or SmolLM2-135M-Instruct-F16.gguf, with its FORK.json beside it.
"""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import openai
import pytest

from bankml.receipt.check import check
from tests import oracle
from tests.upstream.test_spawn import free_port, gone

pytestmark = pytest.mark.oracle
LLAMA_SERVER = oracle.BIN / "llama-server"
NAMES = ("Qw-tiny-F16.gguf", "SmolLM2-135M-Instruct-F16.gguf")
QUESTION = {"messages": [{"role": "user", "content": "Name three colours."}], "max_tokens": 24, "temperature": 0}


@pytest.fixture(scope="module")
def model():
    oracle.find("llama-server")
    found = [oracle.MODELS / name for name in NAMES if (oracle.MODELS / name).exists()]
    return found[0] if found else oracle.model(NAMES[0])


class Front:
    def __init__(self, model, *words):
        self.gateway, self.engine = free_port(), free_port()
        addresses = ["--listen", f"127.0.0.1:{self.gateway}", "--upstream", f"127.0.0.1:{self.engine}"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bankml", "serve", str(model), *addresses, *words],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("ask: "):
                return
        raise AssertionError(self.said)

    @property
    def child(self):
        line = next(line for line in self.said if line.startswith("waiting: "))
        return int(line.split("(process ")[1].split(")")[0])

    def ask(self, port, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def slot_is_busy(self):
        return json.loads(self.ask(self.engine, "/slots"))[0]["is_processing"]


@pytest.fixture(scope="module")
def front(model, tmp_path_factory):
    slots = tmp_path_factory.mktemp("slots")
    words = ("--spawn", str(LLAMA_SERVER), "--ctx", "2048", "--threads", "1", "--spec-ngram", "--slot-dir", str(slots))
    front = Front(model, *words)
    front.slots = slots
    yield front
    front.process.send_signal(signal.SIGTERM)
    assert front.process.wait(6) == 0 and gone(front.child)
    front.process.stderr.close()


def test_the_text_is_the_engines_and_the_receipt_fits(front, model):
    direct = json.loads(front.ask(front.engine, "/v1/chat/completions", QUESTION))
    whole = front.ask(front.gateway, "/v1/chat/completions", QUESTION)
    sent = json.dumps(QUESTION).encode()
    assert check(sent, whole).ok and check(sent, whole).text == direct["choices"][0]["message"]["content"]
    receipt = json.loads(whole)["bankml_receipt"]
    assert receipt["engine"].startswith("llama.cpp b") and receipt["completion_tokens"] == 24
    streamed = QUESTION | {"stream": True}
    got = front.ask(front.gateway, "/v1/chat/completions", streamed)
    checked = check(json.dumps(streamed).encode(), got)
    assert checked.ok and checked.text == check(sent, whole).text
    assert checked.receipt["prompt_tokens"] == receipt["prompt_tokens"] and checked.receipt["ttft_ms"] > 0


def test_curl_and_check(front, model, tmp_path):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    (tmp_path / "q.json").write_text(json.dumps(QUESTION | {"stream": True}) + "\n")
    url = f"http://127.0.0.1:{front.gateway}/v1/chat/completions"
    words = [curl, "-sf", url, "-H", "Content-Type: application/json", "--data-binary", "@q.json", "-o", "a.json"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    bankml = [sys.executable, "-m", "bankml", "check", "q.json", "a.json", "--model", str(model)]
    assert (
        "model_sha256 are true"
        in subprocess.run(bankml, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    )


def test_the_openai_client(front):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{front.gateway}/v1", api_key="none", max_retries=0)
    whole = client.chat.completions.create(model="m", **QUESTION)
    events = client.chat.completions.create(model="m", stream=True, stream_options={"include_usage": True}, **QUESTION)
    text = "".join(event.choices[0].delta.content or "" for event in events if event.choices)
    assert text == whole.choices[0].message.content
    with pytest.raises(openai.BadRequestError, match="messages"):
        client.post("/chat/completions", body={}, cast_to=object)
    client.close()


@pytest.mark.parametrize("streamed", [True, False])
def test_hanging_up_stops_the_generation(front, streamed):
    long = QUESTION | {"max_tokens": 2000, "stream": streamed, "ignore_eos": True}
    body = json.dumps(long).encode()
    with socket.create_connection(("127.0.0.1", front.gateway)) as client:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(0.5)
        assert front.slot_is_busy()
    # llama-server looks for a client that left when nothing has happened for a second; asking for /slots is something
    time.sleep(3)
    assert not front.slot_is_busy()


def test_more_requests_than_the_engine_answers_on_one_connection(front):
    for _ in range(130):
        assert front.ask(front.gateway, "/health") == b'{"status":"ok"}'
    time.sleep(5.2)  # it closes an idle connection after 5 s
    assert front.ask(front.gateway, "/health") == b'{"status":"ok"}'


def test_slots_are_saved_in_the_folder(front):
    front.ask(front.engine, "/slots/0?action=save", {"filename": "one"})
    assert (front.slots / "one").stat().st_size > 0


def test_a_running_engine(front, model):
    second = free_port()
    addresses = ["--listen", f"127.0.0.1:{second}", "--upstream", f"127.0.0.1:{front.engine}"]
    words = [sys.executable, "-m", "bankml", "serve", str(model), *addresses]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("ask: "):
                break
        assert check(json.dumps(QUESTION).encode(), front.ask(second, "/v1/chat/completions", QUESTION)).ok
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0 and front.ask(front.engine, "/health"), "an engine of someone else's goes on"


def test_no_orphan(model):
    front = Front(model, "--spawn", str(LLAMA_SERVER), "--ctx", "256", "--threads", "1")
    front.process.kill()
    front.process.wait()
    front.process.stderr.close()
    assert gone(front.child)
