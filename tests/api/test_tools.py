"""Tool calls and reasoning in answers, whole and streamed, on OpenAI's route and Ollama's."""

import json

import pytest

from bankml.api.ollama.routes import Ollama
from bankml.api.routes import NativeApplication
from bankml.library.registry import Registry
from bankml.receipt.check import check
from tests.answers.recorded import kept
from tests.api.api_toys import SOURCE, ask, toy_library, toy_resident, user

TEMPLATE = kept()["templates"]["Qwen-Qwen3-0.6B"]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("weather", "time")]
THOUGHT = "<think>\nHm, é.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo é"}}\n</tool_call>'
OTHER_CALL = '<tool_call>\n{"name": "time", "arguments": {"city": "Rome"}}\n</tool_call>'
BOTH = f"{CALL}\n{OTHER_CALL}"
ON = {"chat_template_kwargs": {"enable_thinking": True}}


def application(says):
    """A model that says what it is told to, under the grammar of its tools."""
    model = toy_resident(says, template=TEMPLATE)
    model.toy_template = model.template
    return NativeApplication(toy_library(model), ollama=Ollama(Registry(None, SOURCE), 300.0))


def answered(says, **fields):
    body = user("Hi", **{"tools": TOOLS} | fields)
    reply = ask(application(says), body=body)
    assert reply.status == 200, reply.body
    return body, reply


def checked(body, reply):
    found = check(json.dumps(body).encode(), reply.body)
    assert found.ok, found.problems
    return found.receipt


def deltas(reply):
    return [choice["delta"] for event in reply.events for choice in event["choices"]]


def test_a_whole_answer_has_its_calls():
    body, reply = answered(BOTH)
    choice = reply.json["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert list(message) == ["role", "content", "tool_calls"]
    assert message["content"] == ""
    calls = message["tool_calls"]
    assert [(call["type"], call["function"]) for call in calls] == [
        ("function", {"name": "weather", "arguments": '{"city": "Oslo é"}'}),
        ("function", {"name": "time", "arguments": '{"city": "Rome"}'}),
    ]
    assert len({call["id"] for call in calls}) == 2
    assert all(len(call["id"]) == 32 for call in calls)
    assert "message_sha256" in checked(body, reply)


def test_a_stream_has_the_name_first_and_then_the_arguments():
    body, reply = answered(BOTH, stream=True)
    role, first, *more, last = deltas(reply)
    assert role == {"role": "assistant", "content": None}
    call = first["tool_calls"][0]
    assert (call["index"], call["type"], call["function"]) == (0, "function", {"name": "weather", "arguments": "{"})
    assert last == {}
    later = [one["tool_calls"][0] for one in more]
    assert [one["index"] for one in later] == sorted(one["index"] for one in later)
    assert all(set(one) == {"index", "function"} for one in later if one["index"] == 0)
    arguments = "{" + "".join(one["function"]["arguments"] for one in later if one["index"] == 0)
    assert arguments == '{"city": "Oslo é"}'
    assert reply.events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert "message_sha256" in checked(body, reply)


def test_words_before_a_call_are_content():
    _, reply = answered("Let me look.\n" + CALL)
    assert reply.json["choices"][0]["message"]["content"] == "Let me look.\n"


def test_a_call_that_is_cut_ends_by_length():
    _, reply = answered(CALL, max_tokens=60)
    choice = reply.json["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "weather"


def test_without_tools_to_call_the_text_is_content():
    _, reply = answered(CALL, tool_choice="none")
    message = reply.json["choices"][0]["message"]
    assert (message["content"], "tool_calls" in message) == (CALL, False)


def test_a_thought_is_told_apart():
    body, reply = answered(THOUGHT + "It is.", **ON)
    message = reply.json["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "It is.", "reasoning_content": "Hm, é.\n"}
    assert reply.json["choices"][0]["finish_reason"] == "stop"
    assert "message_sha256" in checked(body, reply)
    body, reply = answered(THOUGHT + "It is.", stream=True, **ON)
    assert "".join(one.get("reasoning_content", "") for one in deltas(reply)) == "Hm, é.\n"
    assert "".join(one.get("content") or "" for one in deltas(reply)) == "It is."
    assert "message_sha256" in checked(body, reply)


def test_a_thought_stays_in_the_content_where_that_is_wanted():
    _, reply = answered(THOUGHT + "It is.", reasoning_format="none", **ON)
    assert reply.json["choices"][0]["message"]["content"] == THOUGHT + "It is."


def test_a_call_may_be_required():
    """The grammar lets the model end only behind a call."""
    _, reply = answered(CALL, tool_choice="required")
    assert reply.json["choices"][0]["finish_reason"] == "tool_calls"
    _, reply = answered("No.", tool_choice="required", max_tokens=40)
    assert reply.json["choices"][0]["finish_reason"] == "length"


def test_a_named_function_is_the_one_that_is_called():
    chosen = {"type": "function", "function": {"name": "time"}}
    _, reply = answered(OTHER_CALL, tool_choice=chosen)
    assert reply.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "time"


def test_plain_answers_have_the_receipt_they_had():
    body, reply = answered("Oslo.", tools=[])
    assert "message_sha256" not in checked(body, reply)


def ollama(says, **fields):
    body = {"model": SOURCE.name, "messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS} | fields
    reply = ask(application(says), path="/api/chat", body=body)
    assert reply.status == 200, reply.body
    return [json.loads(line) for line in reply.body.splitlines()]


@pytest.mark.parametrize("stream", [False, True])
def test_ollamas_calls_are_whole_with_their_arguments_as_objects(stream):
    lines = ollama(BOTH, stream=stream)
    calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
    assert [call["function"] for call in calls] == [
        {"index": 0, "name": "weather", "arguments": {"city": "Oslo é"}},
        {"index": 1, "name": "time", "arguments": {"city": "Rome"}},
    ]
    assert (lines[-1]["done"], lines[-1]["done_reason"]) == (True, "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_ollamas_thinking(stream):
    lines = ollama(THOUGHT + "It is.", stream=stream, think=True)
    assert "".join(line["message"].get("thinking", "") for line in lines) == "Hm, é.\n"
    assert "".join(line["message"]["content"] for line in lines) == "It is."
