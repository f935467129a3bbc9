"""Signed answers of every mode and API: a client that has the public key checks each, and finds the key's id where the
server describes itself."""

import json

import pytest

from bankml.receipt.check import check
from bankml.receipt.issuer import Issuer
from bankml.receipt.signature import signature_problems
from bankml.signing import ed25519
from bankml.signing.keys import PublicKey, SigningKey
from tests.api.api_toys import ask, toy_ollama, user
from tests.engine.engine_toys import hashing
from tests.upstream.front import BODY, STREAMED, House

NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def key():
    return SigningKey(ed25519.new_key())


@pytest.fixture
def issuer(key):
    return Issuer(key, clock=lambda: NOW)


def require_signed(body, answer, key):
    checked = check(body, answer)
    assert checked.problems == () and list(signature_problems(checked.receipt, key.public, NOW)) == []
    return checked.receipt


PROMPT = {"prompt": "Where?", "max_tokens": 8}
REQUESTS = [
    ("/v1/chat/completions", user("Where?")),
    ("/v1/chat/completions", user("Where?", stream=True)),
    ("/v1/chat/completions", user("Where?", logprobs=True, seed=7)),
    ("/v1/completions", PROMPT),
    ("/v1/completions", {**PROMPT, "prompt": ["Where?", "When?"]}),
    ("/completion", {**PROMPT, "stream": True}),
    ("/v1/responses", {"input": "Where?"}),
    ("/v1/responses", {"input": "Where?", "stream": True}),
    ("/v1/messages", user("Where?", max_tokens=8)),
    ("/v1/messages", user("Where?", max_tokens=8, stream=True)),
    ("/api/chat", user("Where?", model="toy-1m-f16")),
    ("/api/generate", {"prompt": "Where?", "model": "toy-1m-f16", "stream": False}),
]


@pytest.mark.parametrize(("path", "request_body"), REQUESTS)
def test_every_api_signs(key, issuer, path, request_body):
    application, library = toy_ollama("Oslo." if "prompt" not in request_body or path == "/api/generate" else hashing)
    library.issuer = issuer
    body = json.dumps(request_body).encode()
    require_signed(body, ask(application, path, body).body, key)


@pytest.mark.parametrize("streamed", [False, True])
def test_in_front_of_llama_server_the_receipt_says_which_engine_answered(tmp_path, key, issuer, streamed):
    with House(tmp_path / "m.gguf", issuer=issuer) as house:
        body = STREAMED if streamed else BODY
        status, answer = house.chat(body)
        about = json.loads(house.ask(path="/bankml")[2])
    assert status == 200
    receipt = require_signed(body, answer, key)
    assert receipt["engine"].startswith("llama.cpp b11192-0 (proven: the file; not: ")
    assert about["signing"] == {"key_id": key.key_id, "public_key": key.public_pem}


def test_the_server_shows_the_key_by_which_it_signs(tmp_path, key, issuer):
    application, library = toy_ollama("Oslo.")
    library.issuer = issuer
    about = ask(application, "/bankml").json
    assert about["signing"]["key_id"] == key.key_id
    (tmp_path / "shown.pem").write_text(about["signing"]["public_key"])
    assert PublicKey.read(str(tmp_path / "shown.pem")).key_id == key.key_id
