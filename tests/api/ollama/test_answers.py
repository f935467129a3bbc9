"""Ollama's answers through the whole application: lines or one object, hashed as they are sent, errors in its shape."""

import json
import re
import time

import pytest
from ollama import ChatResponse, GenerateResponse

from bankml.engine.active import OUTPUT_LIMIT
from bankml.receipt.check import check
from tests.api.api_toys import MemoryReply, ToyModel, ask, toy_ollama, user
from tests.engine.engine_toys import hashing, saying

MODEL = "toy-1m-f16"
CHAT, GENERATE = "/api/chat", "/api/generate"
FINAL = [
    "total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration",
    "bankml_cache_n", "bankml_receipt",
]  # fmt: skip
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,8}[1-9])?Z")


def hi(text="Hi", **more):
    return user(text, model=MODEL, **more)


def prompt(text="Hi", **more):
    return {"model": MODEL, "prompt": text, **more}


def test_a_streamed_chat_is_lines_and_the_last_has_what_was_measured():
    body = json.dumps(hi("Capital?")).encode()
    reply = ask(toy_ollama()[0], CHAT, body, arrived=time.monotonic() - 1)
    assert (reply.status, reply.content_type, reply.finished) == (200, "application/x-ndjson", True)
    *parts, last = reply.lines
    for line in reply.lines:
        ChatResponse.model_validate(line)
        assert line["model"] == MODEL and MOMENT.fullmatch(line["created_at"])
    assert [list(part) for part in parts] == [["model", "created_at", "message", "done"]] * 5
    assert [part["message"] for part in parts] == [{"role": "assistant", "content": c} for c in "Oslo."]
    assert not any(part["done"] for part in parts)
    assert list(last) == ["model", "created_at", "message", "done", "done_reason", *FINAL]
    assert (last["message"], last["done"], last["done_reason"]) == ({"role": "assistant", "content": ""}, True, "stop")
    assert (last["prompt_eval_count"], last["eval_count"], last["bankml_cache_n"]) == (len("Q:Capital?\nA:"), 6, 0)
    assert all(isinstance(last[name], int) for name in FINAL[:-1])
    assert 10**9 <= last["total_duration"] < 60 * 10**9 and last["load_duration"] == 0
    checked = check(body, reply.body)
    assert checked.ok and checked.text == "Oslo."
    assert (reply.log.status, reply.log.note, reply.log.completion_tokens) == (200, "stop", 6)


@pytest.mark.parametrize("path", [CHAT, GENERATE])
@pytest.mark.parametrize(
    ("options", "text", "reason"),
    [
        ({}, "Oslo.", "stop"), ({"stop": ["lo"]}, "Os", "stop"), ({"num_predict": 2}, "Os", "length"),
        ({"num_predict": -1}, "Oslo.", "stop"), ({"num_predict": -2, "stop": "o."}, "Osl", "stop"),
        ({"num_predict": 0}, "O", "length"), ({"num_gpu": 99, "num_thread": 4, "numa": True}, "Oslo.", "stop"),
    ],
)  # fmt: skip
def test_streamed_whole_and_hashed_text_are_one(path, options, text, reason):
    asked = hi("Capital?", options=options) if path == CHAT else prompt("Capital?", options=options)
    for stream in (True, False):
        body = json.dumps({**asked, "stream": stream}).encode()
        reply = ask(toy_ollama()[0], path, body)
        checked = check(body, reply.body)
        assert checked.ok and checked.text == text
        assert reply.lines[-1]["done_reason"] == reason
        if not stream:
            assert reply.content_type == "application/json; charset=utf-8" and len(reply.lines) == 1


def test_generate_carries_text_in_response_and_counts_as_chat_does():
    chat, generate = (ask(toy_ollama()[0], path, {**body, "stream": False}).json
                      for path, body in ((CHAT, hi()), (GENERATE, prompt())))  # fmt: skip
    GenerateResponse.model_validate(generate)
    assert list(generate) == ["model", "created_at", "response", "done", "done_reason", *FINAL]
    assert generate["response"] == chat["message"]["content"] == "Oslo."
    for name in ("prompt_eval_count", "eval_count", "done_reason"):
        assert generate[name] == chat[name]


def test_a_system_message_goes_before_the_prompt_and_a_raw_prompt_is_all_there_is():
    application, library = toy_ollama(saying("x", after=b""))
    calls = library.resident.engine.model
    ask(application, GENERATE, prompt("Hi", system="Be kind."))
    assert bytes(calls.cache[: len(b"Q:Be kind.\nQ:Hi\nA:")]) == b"Q:Be kind.\nQ:Hi\nA:"
    reply = ask(toy_ollama(saying("Oslo", after=b"I say "))[0], GENERATE, prompt("I say ", raw=True, stream=False))
    assert reply.json["response"] == "Oslo" and reply.json["prompt_eval_count"] == len("I say ")


def test_the_same_conversation_is_the_same_on_v1_with_the_same_reuse():
    messages = [{"role": "user", "content": "Hi"}]
    application, _ = toy_ollama(hashing)
    first = ask(
        application, CHAT, {"model": MODEL, "messages": messages, "options": {"num_predict": 9}, "stream": False}
    )
    again = ask(application, body={"messages": messages, "max_tokens": 9}).json
    assert again["choices"][0]["message"]["content"] == first.json["message"]["content"]
    assert again["timings"]["cache_n"] == first.json["prompt_eval_count"] - 1
    third = ask(application, CHAT, {"model": MODEL, "messages": messages, "options": {"num_predict": 9}}).lines[-1]
    assert third["bankml_cache_n"] == again["timings"]["cache_n"]


def test_what_the_conversation_brought_along_is_part_of_the_answer():
    messages = [{"role": "user", "content": "Capital?"}, {"role": "assistant", "content": "Os"}]
    for stream in (True, False):
        body = json.dumps({"model": MODEL, "messages": messages, "stream": stream}).encode()
        reply = ask(toy_ollama()[0], CHAT, body)
        assert check(body, reply.body).ok and check(body, reply.body).text == "Oslo."


@pytest.mark.parametrize(
    ("path", "body"), [(CHAT, {"messages": []}), (CHAT, {}), (GENERATE, {}), (GENERATE, {"prompt": ""})]
)
def test_an_empty_request_loads_and_unloads(path, body):
    application, library = toy_ollama()
    resident = library.resident
    empty = {"response": ""} if path == GENERATE else {"message": {"role": "assistant", "content": ""}}
    unloaded = ask(application, path, {"model": MODEL, **body, "keep_alive": 0})
    assert unloaded.status == 200 and unloaded.content_type.startswith("application/json")
    assert unloaded.json.items() >= {"done": True, "done_reason": "unload", **empty}.items()
    assert library.resident is None
    assert ask(application, "/api/ps").json == {"models": []}
    again = ask(application, path, {"model": MODEL, **body, "keep_alive": "0s"})
    assert again.json["done_reason"] == "unload" and library.resident is None
    loaded = ask(application, path, {"model": MODEL, **body})
    assert loaded.json.items() >= {"done": True, "done_reason": "load", **empty}.items()
    assert library.resident is resident and "bankml_receipt" not in loaded.json


@pytest.mark.parametrize(
    ("keep_alive", "seconds"),
    [(None, 300), (60, 60), ("1h", 3600), (0.5, 0.5), (-1, None), ("-5m", None)],
)
def test_a_model_stays_as_long_as_the_request_says(keep_alive, seconds):
    for path, body in ((CHAT, hi()), (GENERATE, prompt()), (CHAT, {"model": MODEL}), (GENERATE, {"model": MODEL})):
        application, library = toy_ollama()
        before = time.time()
        ask(application, path, {**body, "stream": False, **({} if keep_alive is None else {"keep_alive": keep_alive})})
        if seconds is None:
            assert library.expires_at is None
        else:
            assert before + seconds <= library.expires_at + 0.01 <= time.time() + seconds + 0.02


def test_a_model_goes_after_an_answer_that_says_so():
    application, library = toy_ollama()
    assert ask(application, CHAT, hi(keep_alive=0, stream=False)).json["message"]["content"] == "Oslo."
    assert library.resident is None
    application, library = toy_ollama(keep_alive=0)
    assert ask(application, GENERATE, {"model": MODEL}).json["done_reason"] == "load" and library.resident is None


def test_v1_keeps_the_model_for_good():
    application, library = toy_ollama()
    ask(application, CHAT, hi())
    assert library.expires_at is not None
    ask(application, body=user("Hi"))
    assert library.expires_at is None


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        (CHAT, {**hi(), "model": "other"}, 404, "unknown model 'other'"),
        (CHAT, {"messages": []}, 400, "model is required"),
        (CHAT, hi(options={"mirostat": "on"}), 400, "Field 'options.mirostat'"),
        (CHAT, hi(options={"num_ctx": 0}), 400, "Field 'options.num_ctx': Value must be between 1"),
        (GENERATE, prompt(suffix="x"), 501, "Infill is not supported by this model: prefix token is missing."),
        (GENERATE, b"{", 400, "the body is not JSON"),
        (GENERATE, b"", 400, "the body is empty"),
        ("/api/embed", {"model": MODEL, "input": "x"}, 501, "does not support embeddings"),
        ("/api/embeddings", {"model": MODEL}, 501, "does not support embeddings"),
        ("/api/pull", {"model": "llama3"}, 501, "models are not downloaded"),
        ("/api/push", {"model": MODEL}, 501, "nothing is uploaded"),
        ("/api/blobs/sha256:00", {}, 501, "no files are taken in"),
        ("/api/create", {"model": "x", "from": MODEL}, 400, "this server has no registry"),
        ("/api/create", {"model": "x", "from": MODEL, "quantize": "q4_K_M"}, 400, "Field 'quantize'"),
        ("/api/create", {"model": "x", "files": {"a": "sha256:00"}}, 400, "Field 'files'"),
        ("/api/create", {"model": "x", "adapters": {"a": "b"}}, 400, "Field 'adapters'"),
        ("/api/create", {"model": "x", "modelfile": "FROM y", "system": "z"}, 400, "Field 'system'"),
        ("/api/copy", {"source": MODEL}, 400, "destination is required"),
        ("/api/show", {"model": "other"}, 404, "unknown model 'other'"),
        ("/api/show", {}, 400, "model is required"),
        ("/api/nothing", {}, 404, "there is nothing at this path"),
        ("/api/delete", {"model": MODEL}, 405, "/api/delete answers DELETE only"),
    ],
)  # fmt: skip
def test_errors_have_ollamas_shape(path, body, status, error):
    reply = ask(toy_ollama()[0], path, body)
    assert reply.status == status and list(reply.json) == ["error"]
    assert error in reply.json["error"] and reply.content_type == "application/json; charset=utf-8"


def test_the_api_is_on_the_gateway_address_alone():
    for path in ("/", "/api/version", "/api/tags"):
        assert ask(toy_ollama()[0], path).status == 200
        assert ask(toy_ollama()[0], path, address="engine").status == 404
        assert ask(toy_ollama()[0], path, method="HEAD").status == 200
    assert ask(toy_ollama()[0], "/").body == b"bankML is running\nIts page: /bankml/ui\n"
    assert ask(toy_ollama()[0], "/api/blobs/sha256:00", method="HEAD").status == 404
    assert ask(toy_ollama()[0], "/api/chat").headers == {"Allow": "POST"}


def test_a_failure_after_the_first_token_is_a_line_with_an_error():
    application, library = toy_ollama("Oslo is the capital.")
    resident = library.resident

    def change_in_the_middle():
        resident.verified.changed = len(resident.engine.model.calls) > 5

    resident.engine.model.before = change_in_the_middle
    reply = ask(application, CHAT, hi())
    assert reply.status == 200 and reply.finished
    assert list(reply.lines[-1]) == ["error"] and "not the file that was verified" in reply.lines[-1]["error"]
    assert b"bankml_receipt" not in reply.body
    whole = ask(application, CHAT, hi(stream=False))
    assert whole.status == 503 and list(whole.json) == ["error"]


def test_a_client_that_leaves_stops_the_generation():
    model = ToyModel(hashing)
    reply = ask(toy_ollama(model=model)[0], CHAT, hi(), reply=MemoryReply(room=3))
    assert len(reply.writes) == 3 and len(model.calls) <= OUTPUT_LIMIT + 4 and not reply.finished
    assert reply.log.status == 499
    for body in (hi(stream=False), {"model": MODEL}):
        application, library = toy_ollama()
        with library.turn(lambda: False):
            gone = ask(application, CHAT, body, reply=MemoryReply(is_cancelled=True))
        assert gone.status == 503 and list(gone.json) == ["error"] and gone.log.status == 499


def test_a_file_that_changed_is_not_loaded_for_anybody():
    application, library = toy_ollama()
    library.resident.verified.changed = True
    assert ask(application, GENERATE, {"model": MODEL}).status == 503
    assert ask(application, CHAT, hi()).status == 503


def test_check_tells_a_stream_that_was_cut_short():
    body = json.dumps(hi()).encode()
    reply = ask(toy_ollama()[0], CHAT, body)
    whole = reply.body.splitlines(keepends=True)
    assert "done" in check(body, b"".join(whole[:-1])).problems[0]
    assert check(body, whole[0]).problems == ("the answer carries 0 receipts, not one",)
    assert not check(body, b"".join([*whole[:2], *whole[3:]])).ok
    assert not check(body, b"".join([*whole[:-1], b"{}\n"])).ok
    pretty = json.dumps(ask(toy_ollama()[0], CHAT, {**hi(), "stream": False}).json, indent=2).encode()
    assert check(json.dumps({**hi(), "stream": False}).encode(), pretty).ok


def test_a_context_larger_than_the_server_s_is_capped_and_the_response_says_so():
    application, _ = toy_ollama()
    reply = ask(application, CHAT, hi(options={"num_ctx": 5000}, stream=False))
    assert (reply.status, reply.json["bankml_num_ctx"]) == (200, 4096)
    assert "bankml_num_ctx" not in ask(application, CHAT, hi(options={"num_ctx": 2048}, stream=False)).json


def test_a_model_that_is_there_is_pulled_at_once():
    application, _ = toy_ollama()
    pulled = ask(application, "/api/pull", {"model": MODEL})
    assert [line["status"] for line in pulled.lines] == ["pulling manifest", "success"]
    assert ask(application, "/api/pull", {"name": MODEL, "stream": False}).json == {"status": "success"}
