"""`generate` on a real model made here: the same answer as the chat route's, and what ends it early."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bankml.api.routes import Serving, build_application
from bankml.cli import main
from bankml.errors import Refused
from bankml.gate.verify import record
from bankml.http.exchange import Request
from bankml.library.load import LoadOptions
from tests.tiny_model import END, tiny_model

MESSAGES = [{"role": "user", "content": "hé"}]
NO_END = {"logit_bias": [[END, False]]}
COMMAND = [sys.executable, "-m", "bankml", "generate"]


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("generate"))


@pytest.fixture(scope="module")
def model(verified):
    return verified.path


class Gathering(io.BytesIO):
    def __init__(self):
        super().__init__()
        self.parts = []

    def write(self, data):
        self.parts.append(bytes(data))
        return super().write(data)


@pytest.fixture
def run(monkeypatch, capfd):
    """Runs one command; gives its exit code, what it wrote, the parts it wrote it in, and stderr."""

    def run_one(stdin, *words):
        out = Gathering()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", stdout := io.TextIOWrapper(out, "utf-8"))
            patch.setattr(stdout, "fileno", lambda: os.open(os.devnull, os.O_WRONLY), raising=False)
            code = main(["generate", *map(str, words)])
        return code, out.getvalue().decode(), out.parts, capfd.readouterr().err

    return run_one


class Whole:
    """A reply that keeps the answer."""

    def whole(self, status, body, *more):
        self.answer = json.loads(body)

    def cancelled(self):
        return False


@pytest.fixture(scope="module")
def asked(verified):
    """The content that the chat route gives for a body."""
    application = build_application(verified, LoadOptions(512), Serving())

    def ask(**body):
        reply = Whole()
        raw = json.dumps({"messages": MESSAGES, "max_tokens": 24, **body}).encode()
        application.answer(Request("POST", "/v1/chat/completions", "", {}, raw, "gateway", 0.0), reply)
        return reply.answer["choices"][0]["message"]["content"]

    return ask


def test_text_messages_and_request_are_one_question(run, model, asked):
    greedy = asked(temperature=0)
    for stdin in (
        "hé",
        "hé\n",
        "hé\r\n",
        json.dumps(MESSAGES),
        json.dumps({"messages": MESSAGES, "stream": True, "temperature": None}),
    ):
        assert run(stdin.encode(), model, "--max", 24)[:2] == (0, greedy)


def test_it_is_told_as_it_comes_in_whole_characters(run, model):
    code, text, parts, err = run(json.dumps({"messages": MESSAGES, **NO_END}).encode(), model, "--max", 60)
    assert (code, err) == (0, "") and len(parts) > 20
    assert "".join(part.decode() for part in parts) == text


def test_how_it_is_sampled(run, model, asked):
    stdin = json.dumps(MESSAGES).encode()
    words = ("--sample", "--temp", 1.5, "--top-k", 30, "--top-p", 0.9, "--min-p", 0.01, "--seed", 7)
    settings = {"temperature": 1.5, "top_k": 30, "top_p": 0.9, "min_p": 0.01, "seed": 7}
    assert run(stdin, model, "--max", 24, *words)[1] == asked(**settings) != asked(temperature=0)
    assert run(stdin, model, "--max", 24, "--sample", "--seed", 7)[1] == asked(seed=7)
    told = json.dumps({"messages": MESSAGES, "temperature": 1.5, "seed": 3, "n_predict": 5}).encode()
    assert run(told, model, "--max", 24)[1] == asked(temperature=1.5, seed=3)
    assert run(told, model, "--max", 24, "--sample", "--seed", 4)[1] == asked(temperature=1.5, seed=4)


def test_json_is_the_whole_answer_with_a_receipt_that_fits(run, model, asked, tmp_path, capfd):
    request, answer = tmp_path / "request.json", tmp_path / "answer.json"
    request.write_text(json.dumps({"messages": MESSAGES}))
    code, text, _, err = run(request.read_bytes(), model, "--max", 24, "--json")
    answer.write_text(text)
    body = json.loads(text)
    assert (code, err, text.count("\n")) == (0, "", 1) and body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["content"] == asked(temperature=0)
    assert (body["model"], body["usage"]["completion_tokens"]) == ("tiny", body["bankml_receipt"]["completion_tokens"])
    assert main(["check", str(request), str(answer), "--model", model]) == 0
    capfd.readouterr()


def test_mistakes_are_one_line_and_exit_1(run, model):
    for stdin, words, says in (
        (b"hi", ("--temp", "0.5"), "--temp applies to sampling: give --sample with it"),
        (b"hi", ("--seed", "1"), "--seed applies to sampling"),
        (b"hi", ("--sample", "--top-p", "nan"), "--top-p nan is not a finite number"),
        (b"hi", ("--sample", "--temp", "x"), "argument --temp: invalid float value: 'x'"),
        (b"hi", ("--sample", "--temp", "-1"), "--temp -1.0 is out of range: 0 or more"),
        (b"hi", ("--sample", "--top-p", "1.5"), "--top-p 1.5 is out of range: 0 to 1"),
        (b"hi", ("--sample", "--min-p", "-0.1"), "--min-p -0.1 is out of range: 0 to 1"),
        (b"hi", ("--sample", "--top-k", "-1"), "--top-k -1 is out of range: 0 to 2147483647"),
        (b"hi", ("--sample", "--seed", "-2"), "--seed -2 is out of range: -1 to 4294967295"),
        (b"hi", ("--sample", "--seed", "4294967296"), "--seed 4294967296 is out of range"),
        (b"hi", ("--max", "0"), "argument --max: 0 is out of range: 1 to 2147483647"),
        (b"hi", ("--max", "x"), "argument --max: invalid whole number value: 'x'"),
        (b"hi", ("--ctx", "0"), "argument --ctx: 0 is out of range"),
        (b"hi", ("--threads", "257"), "argument --threads: 257 is out of range: 1 to 256"),
        (b"hi", ("--fork", "nowhere.json"), "cannot read nowhere.json: no such file"),
        (b" " * ((16 << 20) + 1), (), "stdin is longer than 16777216 bytes"),
        (b"", (), "stdin is empty"),
        (b" \n", (), "stdin is empty"),
        (b"\xef\xbb\xbf[]", (), "stdin begins with a byte order mark"),
        (b"\xff", (), "the text on stdin is not UTF-8 (byte 0)"),
        (b"{broken json", (), "not JSON: Expecting property name"),
        (b"[INST] hi", (), "(input that begins with [ or { is read as JSON)"),
        (b'["a"]', (), "messages must contain 'content'"),
        (b'[{"role": "user"', (), "stdin is neither a list of messages nor a chat request: the body is not JSON"),
        (b"{}", (), "'messages' is required"),
        (b"[]", (), "'messages' is empty"),
        (b'{"messages": [], "n": 2}', (), "Field 'n'"),
        (b'[{"role": "user", "content": "x"}] and more', (), "the body is not JSON: Extra data"),
        (b'{"messages": [{"role": "user", "content": "x"}], "model": "other"}', (), "unknown model 'other'"),
        (b"x" * 600, ("--ctx", "512"), "exceeds the available context size (512 tokens)"),
    ):
        code, out, _, err = run(stdin, model, *words)
        assert (code, out) == (1, "") and says in err and err.startswith("error: ") and err.count("\n") == 1, err


def test_nothing_is_generated_that_is_not_verified(run, model, tmp_path, monkeypatch):
    other = tmp_path / "tiny.gguf"
    other.write_bytes(Path(model).read_bytes())
    code, out, _, err = run(b"hi", other)
    assert (code, out) == (1, "") and f"there is no {other}.FORK.json beside the model" in err
    fork = tmp_path / "F"
    record(model, fork)
    mistyped = tmp_path / "tinny.gguf"
    for words in ((), ("--fork", fork)):
        assert run(b"hi", mistyped, *words)[::3] == (1, f"error: cannot read {mistyped}: no such file or directory\n")
    other.write_bytes(other.read_bytes()[:-1] + b"\x01")
    code, out, _, err = run(b"hi", other, "--fork", fork)
    assert (code, out) == (2, "") and "!= pinned" in err

    def no_tokens(header):
        raise Refused("tensor x is not played")

    monkeypatch.setattr("bankml.library.supported.read_config", no_tokens)
    code, out, _, err = run(b"hi", other, "--fork", fork)  # said before it is hashed, which would refuse it too
    assert (code, out, err) == (2, "", "refuse: tiny.gguf: tensor x is not played\n")


def begun(model):
    """A process that generates without end, once its first bytes have come; and those."""
    child = subprocess.Popen(
        [*COMMAND, model, "--ctx", "8192"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    child.stdin.write(json.dumps({"messages": MESSAGES, **NO_END}).encode())
    child.stdin.close()
    child.stdin = None
    return child, os.read(child.stdout.fileno(), 16)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_between_two_tokens(model, number, code):
    child, first = begun(model)
    with child:
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
    assert child.returncode == code and (first + out).decode()
    assert err == (b"error: interrupted\n" if number == signal.SIGINT else b"")


def test_a_reader_that_left_is_nobody_to_complain_to(model):
    child, _ = begun(model)
    with child:
        child.stdout.close()
        err = child.stderr.read()
        assert (child.wait(timeout=20), err) == (1, b"")
