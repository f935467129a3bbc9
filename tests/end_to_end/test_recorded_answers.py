"""`bankml serve --native` on real models, over real sockets: what llama-server answered to the same requests."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bankml.receipt.check import check
from tests.end_to_end.answers import essence
from tests.end_to_end.servers import ask, exchange, free_port, waiting
from tests.end_to_end.tiny import MODELS, write

RECORDING = Path(__file__).parent.parent / "recordings/end_to_end/llama-server.json"
RECORDED = json.loads(RECORDING.read_text(encoding="utf-8"))
# As llama-server was run: two threads, no cache beside the slot's own.
ENVIRONMENT = {"BANKML_LLAMA_THREADS": "2", "BANKML_THREADS": "2", "BANKML_CACHE_RAM": "0"}


@pytest.fixture(scope="module", params=MODELS, ids=lambda tiny: tiny.name)
def served(request, tmp_path_factory):
    """The model, the gateway's port and the engine's of a server that has just been started on it."""
    folder = tmp_path_factory.mktemp("model")
    path = folder / f"{request.param.name}.gguf"
    write(path, request.param)
    fork = ["--fork", f"{path}.FORK.json"]
    bankml = [sys.executable, "-m", "bankml"]
    subprocess.run([*bankml, "pin", str(path), *fork, "--record"], check=True, capture_output=True)
    gate, engine = free_port(), free_port()
    where = ["--listen", f"127.0.0.1:{gate}", "--upstream", f"127.0.0.1:{engine}", "--ctx", "2048"]
    with open(folder / "log", "wb") as log:
        command = [*bankml, "serve", str(path), *fork, "--native", "--parallel", "1", *where]
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **ENVIRONMENT})
    try:
        waiting(gate, process)
        yield path, gate, engine
    finally:
        process.terminate()
        assert process.wait(10) in (0, -15)


def wanted(case, answers):
    """llama-server's answer; but its streams lose what was held for a stop string when the token limit comes, and have
    no role where the first token releases no text."""
    want = answers[case["name"]]
    if want.get("role") == []:
        want = {**want, "role": [0]}
    if case["body"].get("stream") and "stop" in case["body"] and want.get("finish") == "length":
        return {**want, "text": answers[case["name"].replace("streamed", "whole")]["text"]}
    return want


def test_every_recorded_answer(served):
    path, gate, _ = served
    recorded = RECORDED["models"][path.stem]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == recorded["sha256"], "not the model that was recorded"
    wrong = []
    answers = {case["name"]: answer for case, answer in zip(RECORDED["cases"], recorded["answers"], strict=True)}
    for case in RECORDED["cases"]:
        status, data, streamed = ask(gate, case["path"], case["body"])
        want, got = wanted(case, answers), essence(status, data, streamed)
        if got != want:
            wrong.append((case["name"], {k: (want.get(k), got.get(k)) for k in want if want.get(k) != got.get(k)}))
        if status == 200 and b"bankml_receipt" in data:
            assert check(json.dumps(case["body"]).encode(), data).problems == ()
    assert not wrong, f"{len(wrong)} of {len(recorded['answers'])} differ: {wrong[:3]}"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/completion", "/completions"])
def test_streamed_and_whole_are_one_answer(served, path):
    """The same text, the same entries where text was released, and receipts that fit; on both addresses."""
    _, gate, engine = served
    for port, seed in ((gate, 1), (engine, 2)):
        body = {"seed": seed, "max_tokens": 20, "n_probs": 2, "cache_prompt": False}
        body |= {"prompt": "where the wind"} if path != "/v1/chat/completions" else {"messages": MESSAGES}
        answers = []
        for stream in (False, True):
            sent = json.dumps({**body, "stream": stream}).encode()
            status, _, data = exchange(port, "POST", path, sent)
            checked = check(sent, data)
            assert status == 200 and checked.problems == () and "logprobs_sha256" in checked.receipt
            answers.append((checked, essence(status, data, stream)))
        (whole, one), (streamed, events) = answers
        assert whole.text == streamed.text
        for field in ("prompt_tokens", "completion_tokens", "response_sha256"):
            assert whole.receipt[field] == streamed.receipt[field]
        if path == "/v1/chat/completions":
            first, *rest = one["probs"]
            assert events["probs"] in ([first, *_speaking(rest)], _speaking(one["probs"]))
        else:
            assert events["probs"] == one["probs"]
            assert whole.receipt["logprobs_sha256"] == streamed.receipt["logprobs_sha256"]


HOPELESS = [
    ({"grammar": "root ::= ("}, "Failed to initialize samplers: failed to parse grammar: line 1, column 11"),
    ({"grammar": "root ::= " + "(" * 100_000}, "brackets are nested deeper"),
    ({"grammar": 'root ::= ((("a"?)*)*){1,2000}'}, "number of rules that are going to be repeated"),
    ({"grammar": "root ::= x{2000}\nx ::= x*"}, "left recursion"),
    ({"json_schema": {"type": "frob"}}, "JSON schema error at #: unrecognized type frob"),
    ({"json_schema": {"allOf": [{"$ref": "#"}]}}, "JSON schema error at #/allOf/0"),
    ({"json_schema": {"enum": ["a" * 100_000] * 30}}, "the grammar made of the JSON schema cannot be used"),
    ({"json_schema": {"prefixItems": [{"required": ["x" * 50], "properties": {"x" * 50: {}}}] * 20_000}}, "too large"),
    ({"json_schema": {}, "grammar": "root ::= [a]"}, "Cannot use both json_schema and grammar"),
]
"""What no answer can be held to, and a part of the reason."""


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/completion"])
def test_what_no_answer_can_be_held_to_is_refused_at_once(served, path):
    _, gate, _ = served
    prompt = {"prompt": "the"} if path == "/completion" else {"messages": MESSAGES}
    for wanted, why in HOPELESS:
        began = time.monotonic()
        status, data, _ = ask(gate, path, {**prompt, "stream": True, **wanted})
        assert time.monotonic() - began < PATIENCE
        error = json.loads(data)["error"]
        assert (status, error["type"]) == (400, "invalid_request_error") and why in error["message"], error


PATIENCE = 5
"""Seconds for what takes a quarter of one where nothing else runs."""

MESSAGES = [{"role": "user", "content": "where is the rain?"}]


def _speaking(probs):
    """The entries of tokens that released text."""
    return [entry for entry in probs if entry[0].split(" ", 1)[1]]
