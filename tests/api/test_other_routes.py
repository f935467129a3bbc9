import json

import pytest

from bankml import __version__
from bankml.api.routes import ROUTES
from bankml.sampling.numbers import float32
from tests.api.api_toys import PROVENANCE, ToyModel, ask, toy_application, user
from tests.engine.engine_toys import END, N_VOCAB


@pytest.fixture(params=["gateway", "engine"])
def get(request):
    return lambda path, **more: ask(toy_application(), path, address=request.param, **more)


def test_bankml_says_what_was_verified(get):
    assert get("/bankml").json == {
        "bankml": __version__,
        "engine": PROVENANCE.engine,
        "model": "toy-1m-f16",
        "path": "/models/Toy-1M-F16.gguf",
        "fork": "/models/FORK.json",
        "model_sha256": PROVENANCE.model_sha256,
        "guard": "play",
        "verified_at": "2026-01-01T00:00:00Z",
        "unchanged": True,
        "upstream": None,
        "n_ctx": 4096,
        "resident": {"name": "toy-1m-f16", "expires_at": None, "tensors": {}},
        "refused": None,
        "signing": None,
        "log": None,
        "models": [
            {
                "name": "toy-1m-f16",
                "file": "Toy-1M-F16.gguf",
                "sha256": PROVENANCE.model_sha256,
                "found": False,
                "reason": None,
            }
        ],
    }


OTHER = {400: ("/infill", "/control"), 501: ("/embedding", "/embeddings", "/rerank", "/reranking")}
"""What the toy model does not answer."""


def test_no_other_answer_gives_a_path():
    for address, routes in ROUTES.items():
        for path, methods in routes.items():
            if path == "/bankml":
                continue
            for method in methods:
                asked = {"content": "x", "tokens": [65], "input": "Hi", **user("Hi")}
                asked |= {} if "responses" in path else {"prompt": "A:"}
                body = None if method == "GET" else asked
                reply = ask(toy_application(), path, body, method=method, address=address)
                assert reply.status == next((n for n, ends in OTHER.items() if path.endswith(ends)), 200), path
                assert b"/models/" not in reply.body


def test_health(get):
    assert get("/health").body == b'{"status": "ok"}'


def test_props(get):
    props = get("/props").json
    assert props["default_generation_settings"]["n_ctx"] == 4096
    assert props["default_generation_settings"]["params"]["temperature"] == float32(0.8)
    assert (props["total_slots"], props["model_path"], props["chat_template"]) == (
        1,
        "Toy-1M-F16.gguf",
        "{{ messages }}",
    )
    assert (props["bos_token"], props["eos_token"]) == ("", "<b>")


def test_models(get):
    models = get("/v1/models").json
    assert models["object"] == "list"
    assert [m["id"] for m in models["data"]] == ["toy-1m-f16"]
    assert models["data"][0]["meta"]["n_ctx_train"] == 4096
    assert get("/models").json["data"][0]["aliases"] == models["data"][0]["aliases"]


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"content": "a<end>b"}, [97, END, 98]),
        ({"content": "a<end>", "parse_special": False}, list(b"a<end>")),
        ({"content": ["a", 7, "b"]}, [97, 7, 98]),
        ({"content": ""}, []),
        ({}, []),
        ({"content": "é", "with_pieces": True}, [{"id": 0xC3, "piece": [0xC3]}, {"id": 0xA9, "piece": [0xA9]}]),
        ({"content": "a<end>", "with_pieces": True}, [{"id": 97, "piece": "a"}, {"id": END, "piece": "<end>"}]),
    ],
)
def test_tokenize(get, body, tokens):
    assert get("/tokenize", body=body).json == {"tokens": tokens}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tokenize", {"content": 5}, "Field 'content': expected a string or an array, but got 5"),
        ("/tokenize", {"content": None}, "Field 'content': expected a string or an array, but got null"),
        ("/tokenize", {"content": [True]}, "Field 'content[0]': expected a token id, but got true"),
        ("/tokenize", {"content": "a", "parse_special": 1}, "Field 'parse_special': expected true or false, but got 1"),
        ("/tokenize", b"[]", "the body must be a JSON object, but it is an array"),
        ("/detokenize", {"tokens": "x"}, "Field 'tokens': expected an array of token ids, but got \"x\""),
        ("/detokenize", {"tokens": [1.5]}, "Field 'tokens[0]': expected a token id, but got 1.5"),
        ("/detokenize", {"tokens": [1, N_VOCAB]}, f"Field 'tokens[1]': token ids are from 0 to 256, but got {N_VOCAB}"),
        ("/apply-template", {"messages": 5}, "Expected 'messages' to be an array"),
        ("/apply-template", {}, "'messages' is required"),
        (
            "/apply-template",
            {"messages": [{"role": "user", "content": "A"}], "json_schema": {}, "grammar": 'root ::= "x"'},
            "Cannot use both json_schema and grammar",
        ),
    ],
)
def test_what_they_refuse(get, path, body, message):
    reply = get(path, body=body)
    assert (reply.status, reply.error["message"]) == (400, message)


def test_detokenize(get):
    assert get("/detokenize", body={"tokens": [*"é".encode(), END, 0xC3]}).json == {"content": "é<end>\ufffd"}


def test_apply_template_is_the_prompt_that_is_completed(get):
    model = ToyModel(lambda context: END)
    body = user("Hi", max_tokens=5)
    prompt = get("/apply-template", body=body).json["prompt"]
    ask(toy_application(model=model), body=body)
    assert bytes(model.cache).decode() == prompt == "Q:Hi\nA:"


def test_a_missing_feature_is_named(get):
    for path, feature in (
        ("/v1/moderations", "moderation"),
        ("/v1/files", "the Files API"),
        ("/v1/audio/speech", "audio"),
    ):
        reply = get(path)
        assert (reply.status, reply.error["type"]) == (501, "not_supported_error")
        assert reply.error["message"].startswith(f"{path}: {feature} is not supported; this server answers ")


def test_one_model_by_its_name(get):
    listed = get("/v1/models").json["data"][0]
    for name in ("toy-1m-f16", "toy-1m-f16:latest", "Toy-1M-F16.gguf", "toy-1m-f16%3Alatest"):
        assert get(f"/v1/models/{name}").json == listed


def test_unknown_paths_and_wrong_methods(get):
    for path in ["/", "/v1", "/v1/models/", "/v1/models/other", "/HEALTH", "/bankml/../bankml"]:
        reply = get(path)
        assert (reply.status, reply.error["type"], reply.error["code"]) == (404, "not_found_error", 404)
    for path, method, allow in [
        ("/health", "POST", "GET, HEAD"), ("/v1/chat/completions", "GET", "POST"), ("/tokenize", "HEAD", "POST"),
        ("/props", "DELETE", "GET, HEAD"), ("/bankml", "OPTIONS", "GET, HEAD"),
    ]:  # fmt: skip
        reply = get(path, method=method)
        assert (reply.status, reply.headers) == (405, {"Allow": allow})
        assert reply.error["message"] == f"{path} answers {allow.replace(', ', ' and ')} only"


def test_head_is_answered_as_get(get):
    for path in ["/health", "/bankml", "/props"]:
        assert get(path, method="HEAD").body == get(path).body


def test_every_json_answer_is_utf_8_without_escapes():
    reply = ask(toy_application("höj 🙂"), body=user("Hi"))
    assert "höj 🙂" in reply.body.decode() and json.loads(reply.body)
