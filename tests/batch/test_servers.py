"""Batches computed by running servers: the same bytes, whoever of them is killed or lies."""

import contextlib
import json
import os
import subprocess
import sys
import time

import pytest

from bankml.api.routes import Serving, build_application
from bankml.batch.http_client import ServerClient
from bankml.batch.request import InputLine, read_line
from bankml.batch.servers import ServerWorker
from bankml.batch.worker import WorkerLost
from bankml.cli import main
from bankml.errors import UsageError
from bankml.gate.verify import verify
from bankml.http.collected_reply import CollectedReply
from bankml.library.load import LoadOptions
from bankml.receipt.issuer import UNSIGNED, Issuer
from bankml.signing.keys import PublicKey, SigningKey, generate
from tests.api.measured_house import House
from tests.batch.cases import chat, command, requests, started, write_input
from tests.batch.test_local import both
from tests.end_to_end.servers import free_port, waiting
from tests.tiny_model import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_input(tmp_path_factory.mktemp("input") / "in.jsonl", requests(16))


@pytest.fixture(scope="module")
def whole(source, model, tmp_path_factory):
    output = tmp_path_factory.mktemp("whole") / "out.jsonl"
    assert main(command(source, output, "--parallel", 2, model=model.path)) == 2
    return output


@contextlib.contextmanager
def process(model, parallel=2):
    """A server's process and its address."""
    gate, engine = free_port(), free_port()
    where = ["--listen", f"127.0.0.1:{gate}", "--upstream", f"127.0.0.1:{engine}", "--ctx", "1024"]
    options = ["--native", "--parallel", str(parallel), "--embeddings", "--pooling", "last"]
    one = subprocess.Popen(
        [sys.executable, "-m", "bankml", "serve", model.path, *options, *where],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"BANKML_THREADS": "1"},
    )
    try:
        waiting(gate, one)
        yield one, f"http://127.0.0.1:{gate}"
    finally:
        one.kill()
        one.wait()


def application_of(model, issuer=UNSIGNED):
    options = LoadOptions(
        1024, None, {"BANKML_THREADS": "1"}, reasoning=True, parallel=2, embeddings=True, pooling="last"
    )
    return build_application(verify(model.path, model.fork_path), options, Serving(issuer=issuer))


def test_three_servers_one_of_which_is_killed(source, model, whole, tmp_path):
    """One of them has a single slot, whose cache the requests do not use."""
    output = tmp_path / "out.jsonl"
    with process(model) as (_, a), process(model, 1) as (_, b), process(model) as (victim, c):
        warm = ServerClient(b)
        for text in ("the lantern", "the lantern and"):  # its slot has something of what comes
            warm.send("POST", "/v1/embeddings", json.dumps({"input": text}).encode())
        run = started(*command(source, output, "--server", a, b, c, "--parallel", 2))
        while run.poll() is None and (not output.exists() or output.stat().st_size < 2000):
            time.sleep(0.001)
        victim.kill()
        printed = run.communicate()[1].decode()
        assert run.returncode == 2, printed
        assert both(output) == both(whole)
        assert printed.count("dropped: ") == printed.count(f"dropped: {c} is gone") <= 1


class False_:
    """An application whose responses `alter` changes."""

    def __init__(self, application, alter):
        self.application, self.alter = application, alter
        self.parallel = application.parallel

    def answer(self, request, reply):
        collected = CollectedReply(reply.cancelled)
        outcome = self.application.answer(request, collected)
        body = collected.body
        if b"question" in request.body and collected.status == 200:
            body = self.alter(body)
        reply.whole(collected.status, body)
        return outcome


@pytest.fixture(scope="module")
def application(model):
    options = LoadOptions(
        1024, None, {"BANKML_THREADS": "1"}, parallel=2, embeddings=True, pooling="last", reasoning=True
    )
    return build_application(verify(model.path, model.fork_path), options, Serving())


def altered(name, value):
    def alter(body):
        found = json.loads(body)
        found["bankml_receipt"][name] = value
        return json.dumps(found).encode()

    return alter


def cached(body):
    found = json.loads(body)
    found["bankml_receipt"]["replay"]["answers"][0]["cached_tokens"] = 1
    return json.dumps(found).encode()


LIES = {
    "text": (lambda body: body.replace(b'"content": "', b'"content": "x', 1), "the receipt of an answer does not fit"),
    "count": (altered("completion_tokens", 99), "does not fit: "),
    "model": (altered("model_sha256", "0" * 64), f"model_sha256 is {'0' * 64}, not "),
    "engine": (altered("engine", "another"), "engine is another"),
    "no receipt": (lambda body: b"{}", "carries 0 receipts"),
    "no JSON": (lambda body: b"<html>", "cannot be read"),
    "cache": (cached, "uses its cache"),
}


@pytest.mark.parametrize("name", LIES)
def test_what_a_lie_is(application, name):
    alter, message = LIES[name]
    request = read_line(InputLine(1, json.dumps(chat(0, max_tokens=2)).encode()))
    with House(False_(application, alter)) as liar:
        worker = ServerWorker(ServerClient(liar.url), 1)
        worker.connect()
        with pytest.raises(WorkerLost) as lost:
            worker.answer(request, lambda: False)
        worker.close()
    assert message in lost.value.reason


def test_a_server_that_lies_is_dropped_by_name(application, whole, source, tmp_path, capfd):
    output = tmp_path / "out.jsonl"
    with House(application) as honest, House(False_(application, LIES["text"][0])) as liar:
        assert main(command(source, output, "--server", liar.url, honest.url)) == 2
    assert both(output) == both(whole)
    printed = capfd.readouterr().err
    assert f"dropped: {liar.url} lies: " in printed and honest.url not in printed


def test_pins_and_keys(application, model, tmp_path, capfd, source):
    """A server of another model is refused by name; without a pin nothing is guessed."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = tiny_model(folder, seed=2)
    options = LoadOptions(
        1024, None, {"BANKML_THREADS": "1"}, parallel=2, embeddings=True, pooling="last", reasoning=True
    )
    another = build_application(verify(other.path, other.fork_path), options, Serving())
    with House(application) as a, House(another) as b:
        urls = [house.url for house in (b, a)]
        output = tmp_path / "out.jsonl"
        assert main(command(source, output, "--server", *urls)) == 2
        printed = capfd.readouterr().err
        assert f"{urls[0]} and {urls[1]} do not compute the same: model_sha256 is" in printed
        assert main(command(source, output, "--server", *urls, "--model", model.path)) == 2
        printed = capfd.readouterr().err
        assert f"dropped: {urls[0]} serves the model {other.sha256}, not {model.sha256}" in printed
        files = generate(str(tmp_path / "key"), None)
        assert main(command(source, tmp_path / "k", "--server", urls[1], "--key", files.public)) == 2
        assert "has no signature" in capfd.readouterr().err


def test_receipts_that_are_signed(model, tmp_path, source, whole):
    files = generate(str(tmp_path / "key"), None)
    issuer = Issuer(SigningKey.read(files.private, lambda: b""))
    signing = application_of(model, issuer)
    request = read_line(InputLine(1, json.dumps(chat(0)).encode()))
    with House(signing) as house:
        worker = ServerWorker(ServerClient(house.url), 1, key=PublicKey.read(files.public))
        worker.connect()
        line = json.loads(worker.answer(request, lambda: False))
    assert line["response"]["body"]["bankml_receipt"]["signed"] is False, "the digest is what is signed"


def test_addresses_that_are_none():
    for url in ("127.0.0.1:1", "https://127.0.0.1", "http://", "http://127.0.0.1:x", "http://127.0.0.1/v1"):
        with pytest.raises(UsageError, match="is not an address like"):
            ServerClient(url)
    with pytest.raises(WorkerLost, match="connection refused"):
        ServerWorker(ServerClient(f"http://127.0.0.1:{free_port()}"), 1).connect()


def test_options_that_have_no_effect(source, tmp_path, capfd):
    assert (
        main(["batch", str(source), "-o", str(tmp_path / "x"), "--server", "http://127.0.0.1:1", "--threads", "2"]) == 1
    )
    assert "--threads has no effect with --server" in capfd.readouterr().err
