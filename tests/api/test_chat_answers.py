"""Answers through the whole application: the same text whole, streamed and hashed, with true counts."""

import hashlib
import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from bankml import __version__
from bankml.api.routes import NativeApplication
from bankml.engine.active import OUTPUT_LIMIT
from bankml.receipt.check import check
from tests.api.api_toys import (
    CHAT,
    PROVENANCE,
    MemoryReply,
    ToyModel,
    ask,
    toy_application,
    toy_library,
    toy_resident,
    user,
)
from tests.api.test_held_completions import application as constrained
from tests.engine.engine_toys import hashing, saying

RECEIPT_FIELDS = [
    "bankml", "engine", "model_sha256", "guard", "prompt_tokens", "completion_tokens", "ttft_ms", "wall_ms",
    "response_sha256", "request_sha256", "finish_reason", "signed",
]  # fmt: skip


def sha256(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def streamed_text(reply):
    return "".join(c["delta"].get("content") or "" for e in reply.events for c in e.get("choices", []))


def test_a_whole_answer():
    body = json.dumps(user("Capital of Norway?")).encode()
    reply = ask(toy_application(), body=body, arrived=time.monotonic() - 1)
    answer = reply.json
    ChatCompletion.model_validate(answer)
    assert (reply.status, reply.content_type) == (200, "application/json; charset=utf-8")
    assert answer["choices"] == [
        {"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": "Oslo."}}
    ]
    assert (answer["object"], answer["model"]) == ("chat.completion", "toy-1m-f16")
    prompt = len("Q:Capital of Norway?\nA:")
    assert answer["usage"] == {
        "completion_tokens": 6, "prompt_tokens": prompt, "total_tokens": prompt + 6,
        "prompt_tokens_details": {"cached_tokens": 0},
    }  # fmt: skip
    receipt = answer["bankml_receipt"]
    assert list(receipt) == RECEIPT_FIELDS
    assert receipt["bankml"] == __version__ and receipt["signed"] is False
    assert [receipt["engine"], receipt["model_sha256"], receipt["guard"]] == [
        PROVENANCE.engine, PROVENANCE.model_sha256, "play",
    ]  # fmt: skip
    assert (receipt["prompt_tokens"], receipt["completion_tokens"]) == (prompt, 6)
    assert (receipt["response_sha256"], receipt["request_sha256"]) == (sha256("Oslo."), sha256(body))
    assert 1000 <= receipt["ttft_ms"] <= receipt["wall_ms"] < 60_000
    assert (reply.log.status, reply.log.prompt_tokens, reply.log.completion_tokens) == (200, prompt, 6)
    assert "Oslo" not in repr(reply.log)


def test_timings_are_llama_servers_and_a_rate_without_a_count_is_null():
    names = [
        "cache_n", "prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second",
    ]  # fmt: skip
    application = toy_application()
    first = ask(application, body=user("Hi", max_tokens=1)).json["timings"]
    assert list(first) == names
    assert (first["cache_n"], first["prompt_n"], first["predicted_n"]) == (0, 7, 1)
    assert first["prompt_per_second"] > 0 and first["predicted_per_second"] is None
    again = ask(application, body=user("Hi", max_tokens=3)).json["timings"]
    assert (again["cache_n"], again["prompt_n"], again["predicted_n"]) == (6, 1, 3)
    assert again["predicted_per_second"] == pytest.approx(2000 / again["predicted_ms"], rel=0.5)


ROLE = {"role": "assistant", "content": None}


def test_a_streamed_answer():
    body = json.dumps(user("Capital?", stream=True)).encode()
    reply = ask(toy_application(), body=body)
    assert (reply.status, reply.content_type, reply.finished) == (200, "text/event-stream", True)
    assert reply.body.endswith(b"\n\ndata: [DONE]\n\n")
    chunks, receipt = reply.events, reply.events[-1]
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
    assert [c["choices"][0]["delta"] for c in chunks] == [ROLE, *({"content": c} for c in "Oslo."), {}]
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None] * 6 + ["stop"]
    assert len({(c["id"], c["created"], c["model"]) for c in chunks}) == 1
    assert chunks[-1]["timings"]["predicted_n"] == 6 and chunks[-1]["timings"]["cache_n"] == 0
    assert not any("usage" in c for c in chunks)
    assert list(receipt["bankml_receipt"]) == RECEIPT_FIELDS and not any("bankml_receipt" in c for c in chunks[:-1])
    assert receipt["bankml_receipt"]["response_sha256"] == sha256("Oslo.")
    assert receipt["bankml_receipt"]["request_sha256"] == sha256(body)


def test_include_usage_puts_it_in_a_chunk_without_choices():
    reply = ask(toy_application(), body=user("Hi", stream=True, stream_options={"include_usage": True}))
    finish, usage = reply.events[-2:]
    assert finish["choices"][0]["finish_reason"] == "stop" and "usage" not in finish and "bankml_receipt" in finish
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 6 and "cache_n" in usage["timings"]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "Oslo."), ({"stop": "lo"}, "Os"), ({"stop": ["zz", "o."]}, "Osl"), ({"stop": "o.x"}, "Oslo."),
        ({"max_tokens": 2}, "Os"), ({"max_tokens": 0}, "O"), ({"max_tokens": 2.7}, "Os"), ({"max_tokens": -1}, "Oslo."),
        ({"max_completion_tokens": 3, "max_tokens": 1}, "Osl"), ({"n_predict": 4, "max_completion_tokens": 1}, "Oslo"),
        ({"n_predict": None, "max_tokens": 2}, "Os"), ({"stop": "lo", "max_tokens": 3}, "Osl"),
        ({"stop": []}, "Oslo."), ({"stop": None}, "Oslo."),
    ],
)  # fmt: skip
def test_streamed_plain_and_hashed_text_are_one(more, text):
    for stream in (False, True):
        body = json.dumps(user("Capital?", stream=stream, **more)).encode()
        reply = ask(toy_application(), body=body)
        checked = check(body, reply.body)
        assert checked.ok and checked.text == text
        assert (streamed_text(reply) if stream else reply.json["choices"][0]["message"]["content"]) == text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.text("ab€😀", max_size=3))
def test_any_text_survives_both_ways(answer, stop):
    more = {"stop": stop} if stop else {}
    body = json.dumps(user("x", stream=True, **more)).encode()
    reply = ask(toy_application(saying(answer)), body=body)
    expected = answer.split(stop)[0] if stop else answer
    assert streamed_text(reply) == expected
    assert check(body, reply.body).ok


def test_an_answer_cut_within_a_character_is_hashed_as_it_is_sent():
    for stream in (False, True):
        body = json.dumps(user("x", stream=stream, max_tokens=3)).encode()
        reply = ask(toy_application("a€"), body=body)
        assert check(body, reply.body).ok and check(body, reply.body).text == "a"


def test_a_conversation_reuses_what_the_slot_holds():
    application = toy_application()
    first = ask(application, body=user("Hi")).json
    messages = [{"role": "user", "content": "Hi"}, {"role": "user", "content": "And?"}]
    second = ask(application, body={"messages": messages}).json
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == len("Q:Hi\n") == second["timings"]["cache_n"]
    assert ask(application, body=user("Hi", cache_prompt=False)).json["timings"]["cache_n"] == 0
    assert first["choices"] == second["choices"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_file_that_changes_during_the_answer_gets_no_receipt(stream):
    resident = toy_resident("Oslo is the capital.")

    def change_in_the_middle():
        resident.verified.changed = len(resident.engine.model.calls) > 5

    resident.engine.model.before = change_in_the_middle
    reply = ask(NativeApplication(toy_library(resident)), body=user("Capital of Norway?", stream=stream))
    sent = b"".join(reply.writes) if stream else reply.body
    assert reply.status == (200 if stream else 503)
    assert b'"error"' in sent and b"not the file that was verified" in sent
    assert b"bankml_receipt" not in sent and b"[DONE]" not in sent


def test_a_changed_file_is_a_503_without_a_receipt():
    for stream in (False, True):
        resident = toy_resident()
        application = NativeApplication(toy_library(resident))
        assert ask(application, body=user("Hi", stream=stream)).status == 200
        resident.verified.changed = True
        calls = len(resident.engine.model.calls)
        reply = ask(application, body=user("Hi", stream=stream))
        assert (reply.status, reply.error["type"]) == (503, "unavailable_error")
        assert b"receipt" not in reply.body and len(resident.engine.model.calls) == calls
        assert ask(application, "/tokenize", {"content": "x"}).status == 503


def test_a_prompt_that_does_not_fit():
    for stream in (False, True):
        reply = ask(toy_application(model=ToyModel(n_ctx=16)), body=user("x" * 20, stream=stream))
        assert (reply.status, reply.error) == (
            400,
            {
                "code": 400,
                "message": "request (25 tokens) exceeds the available context size (16 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 25,
                "n_ctx": 16,
            },
        )


def test_a_client_that_leaves_a_stream_stops_the_generation():
    model = ToyModel(hashing)
    reply = ask(toy_application(model=model), body=user("Hi", stream=True), reply=MemoryReply(room=3))
    assert len(reply.writes) == 3 and len(model.calls) <= 3 + OUTPUT_LIMIT + 1
    assert not reply.finished, "a stream that breaks off must not look complete"
    assert (reply.log.status, reply.log.completion_tokens) == (499, 3)


def test_a_client_that_leaves_while_a_plain_answer_is_computed():
    model, reply = ToyModel(hashing), MemoryReply()
    model.before = lambda: setattr(reply, "is_cancelled", len(model.calls) == 5)
    ask(toy_application(model=model), body=user("Hi"), reply=reply)
    assert reply.log.status == 499 and len(model.calls) == 6
    assert reply.status == 503 and b"receipt" not in reply.body


def test_a_client_that_leaves_the_queue_computes_nothing():
    resident = toy_resident()
    library = toy_library(resident)
    with library.turn(lambda: False):
        reply = ask(NativeApplication(library), body=user("Hi"), reply=MemoryReply(is_cancelled=True))
    assert reply.log.status == 499 and resident.engine.model.calls == []
    assert ask(NativeApplication(library), body=user("Hi")).status == 200


def test_requests_are_answered_in_the_order_they_came():
    resident, order, threads = toy_resident(), [], []
    library = toy_library(resident)
    application = NativeApplication(library)

    def work(i):
        assert ask(application, body=user(f"number {i}")).json["choices"][0]["message"]["content"] == "Oslo."
        order.append(i)

    with library.turn(lambda: False):
        for i in range(8):
            threads.append(threading.Thread(target=work, args=(i,)))
            threads[-1].start()
            deadline = time.monotonic() + 5
            while library.waiting != i + 1 and time.monotonic() < deadline:
                time.sleep(0.002)
    for thread in threads:
        thread.join(10)
    assert sorted(order) == list(range(8))
    prompts = [calls for calls in resident.engine.model.calls if calls[2] and calls[1] > 1]
    assert len(prompts) == 8


def test_a_failure_after_the_first_token_becomes_an_event(caplog):
    model = ToyModel(saying("secret words"))

    quoted = "about secret words"

    def fail():
        if len(model.calls) == 4:
            raise RuntimeError(quoted)

    model.before = fail
    reply = ask(toy_application(model=model), body=user("Hi", stream=True))
    assert reply.status == 200 and reply.finished
    assert reply.events[-1] == {
        "error": {
            "code": 500,
            "message": "internal error; the server's log has the traceback",
            "type": "server_error",
        }
    }
    assert b"receipt" not in reply.body and b"[DONE]" not in reply.body
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


def test_a_failure_before_the_first_token_is_a_status(caplog):
    model = ToyModel(saying("x"))
    model.before = lambda: 1 // 0
    reply = ask(toy_application(model=model), body=user("Hi"))
    assert (reply.status, reply.error["type"]) == (500, "server_error")
    reply = ask(toy_application(model=model), body=user("Hi", stream=True))
    assert (reply.status, [event["error"]["type"] for event in reply.events]) == (200, ["server_error"])


def test_a_stream_s_head_is_sent_before_its_prompt_is_computed():
    for path, body in ((CHAT, user("Hi", stream=True)), ("/completion", {"prompt": "A:", "stream": True})):
        for interval, seconds in ((None, 30.0), (1, 1.0), (-1, None)):
            model, reply, seen = ToyModel(saying("x")), MemoryReply(), []
            model.before = lambda model=model, reply=reply, seen=seen: seen.append((reply.status, reply.ping_interval))
            ask(toy_application(model=model), path, {**body, "sse_ping_interval": interval}, reply=reply)
            assert seen[0] == (200, seconds)


def test_the_sampler_is_made_before_the_line_and_sees_the_body():
    seen = []

    def sampler(overrides):
        seen.append(overrides.temperature)
        raise ValueError

    ask(toy_application(sampler=sampler), CHAT, user("Hi", temperature=0.5))
    assert seen == [0.5]


def test_a_beginning_that_was_brought_along_is_part_of_the_answer_streamed_too():
    messages = [{"role": "user", "content": "Capital?"}, {"role": "assistant", "content": "Os"}]
    for stream in (False, True):
        body = json.dumps({"messages": messages, "stream": stream}).encode()
        reply = ask(toy_application(), body=body)
        assert check(body, reply.body).ok and check(body, reply.body).text == "Oslo."
    assert reply.events[-1]["bankml_receipt"]["completion_tokens"] == 4


def test_a_stream_reports_its_prompt_s_progress_when_asked():
    body = user("x" * 600, stream=True, return_progress=True, max_tokens=1)
    progress = [
        event["prompt_progress"] for event in ask(toy_application(), body=body).events if "prompt_progress" in event
    ]
    n = len("Q:A:") + 601
    assert [(one["total"], one["cache"], one["processed"]) for one in progress] == [(n, 0, 0), (n, 0, 512), (n, 0, n)]
    assert all(ChatCompletionChunk.model_validate(e) for e in ask(toy_application(), body=body).events)


def test_timings_with_each_chunk_and_verbose_answers():
    events = ask(toy_application(), body=user("Hi", stream=True, timings_per_token=True)).events
    assert all("timings" in event for event in events)
    whole = ask(toy_application(), body=user("Hi", verbose=True)).json
    assert (whole["__verbose"]["content"], whole["__verbose"]["stop_type"]) == ("Oslo.", "eos")


def test_a_client_that_leaves_while_a_micro_batch_is_computed_stops_it_between_layers():
    model, reply = ToyModel(saying("x")), MemoryReply()

    def forward(spans, logits, checkpoint=lambda: None):
        reply.is_cancelled = True
        checkpoint()
        raise AssertionError("a cancelled micro-batch went on")

    model.forward = forward
    ask(toy_application(model=model), body=user("Hi"), reply=reply)
    assert reply.log.status == 499


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ({"type": "json_schema", "schema": {"const": 1}}, "1"),
        ({"type": "json_schema", "json_schema": {"const": 1}}, "1"),
        ({"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"const": 1}}}, "1"),
    ],
)
def test_the_forms_in_which_clients_send_a_schema(format_, text):
    reply = ask(constrained("12"), body=user("Hi", response_format=format_, max_tokens=4))
    assert reply.json["choices"][0]["message"]["content"] == text
