"""`POST /v1/responses`: the chat of the same conversation, in OpenAI's newer form."""

import json

import pytest

from bankml.api.reading.responses import chat_body, read_responses
from bankml.errors import RequestError
from bankml.receipt.check import check
from tests.api.api_toys import ask, toy_application

PATH = "/v1/responses"
TOOL = {"type": "function", "name": "now", "description": "The time.", "parameters": {"type": "object"}}


def asked(body, path=PATH, **parts):
    sent = json.dumps(body).encode()
    reply = ask(toy_application(**parts), path, sent)
    return sent, reply


def named_events(reply):
    """Each event's name and object; every name is its object's type."""
    found = []
    for event in reply.body.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def test_a_response_is_the_chats_answer_with_a_receipt():
    sent, reply = asked({"input": "Hi", "instructions": "Be brief.", "max_output_tokens": 3})
    value = reply.json
    (item,) = value["output"]
    chat = ask(toy_application(), body={"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}).json
    assert item["content"][0]["text"] == chat["choices"][0]["message"]["content"] == "Osl"
    assert (value["object"], value["status"], item["type"], item["role"]) == (
        "response", "completed", "message", "assistant",
    )  # fmt: skip
    assert value["usage"]["output_tokens"] == 3 and value["usage"]["input_tokens"] == len("Q:Be brief.\nQ:Hi\nA:")
    checked = check(sent, reply.body)
    assert checked.ok and checked.text == "Osl"


def test_a_stream_has_named_events_and_the_receipt_in_the_last():
    sent, reply = asked({"input": "Hi", "stream": True})
    events = named_events(reply)
    kinds = [event["type"] for event in events]
    assert kinds[:4] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
    ]  # fmt: skip
    assert kinds[-4:] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
    ]  # fmt: skip
    assert "".join(event["delta"] for event in events if event["type"].endswith("text.delta")) == "Oslo."
    assert [event for event in events if "bankml_receipt" in event] == [events[-1]]
    checked = check(sent, reply.body)
    assert checked.ok and checked.text == "Oslo."


@pytest.mark.parametrize("kind", ["output_text.delta", "output_text.done", "content_part.done", "output_item.done"])
def test_a_changed_event_does_not_fit_the_receipt(kind):
    sent, reply = asked({"input": "Hi", "stream": True})
    changed = []
    for event in named_events(reply):
        if event["type"] == f"response.{kind}":
            event = json.loads(json.dumps(event).replace("O", "X"))  # noqa: PLW2901
        changed.append(f"data: {json.dumps(event)}\n\n")
    assert not check(sent, "".join(changed).encode()).ok


def test_a_changed_text_does_not_fit_the_receipt():
    sent, reply = asked({"input": "Hi"})
    assert not check(sent, reply.body.replace(b"Oslo", b"Rome")).ok
    assert not check(sent, reply.body.replace(b'"output_tokens": 6', b'"output_tokens": 7')).ok
    mixed = {**reply.json, "choices": [{"message": {"content": "Rome"}}]}
    assert not check(sent, json.dumps(mixed).encode()).ok


def test_items_become_messages():
    items = [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "r"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "12:00"},
        {"role": "assistant", "content": "b"},
    ]
    user, text = {"role": "user"}, [{"type": "text", "text": "u"}]
    call = {"type": "function", "id": "c", "function": {"name": "now", "arguments": "{}"}}
    assert chat_body({"input": items})[0]["messages"] == [
        {"role": "developer", "content": [{"type": "text", "text": "d"}]},
        user | {"content": text},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}],
            "reasoning_content": "r",
            "tool_calls": [call],
        },
        {"role": "tool", "tool_call_id": "c", "content": "12:00"},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
    ]


def test_what_is_meant_by_other_names():
    schema = {"type": "object", "properties": {"a": {"const": 1}}}
    body = {
        "input": "x", "reasoning": {"effort": "none"}, "tools": [TOOL],
        "tool_choice": {"type": "function", "name": "now"}, "parallel_tool_calls": False, "seed": 7, "temperature": 0.5,
    }  # fmt: skip
    request = read_responses(json.dumps(body).encode())
    assert request.prompt.enable_thinking is False and request.prompt.called == "now"
    assert request.prompt.parallel_tool_calls is False and request.sampling.seed == 7
    text = {"format": {"type": "json_schema", "name": "a", "schema": schema, "strict": True}}
    constraint = read_responses(json.dumps({"input": "x", "text": text}).encode()).constraint
    assert constraint.schema == schema and constraint.strict


def test_tools_that_are_no_functions_are_left_out_and_named():
    _, reply = asked({"input": "x", "tools": [TOOL, {"type": "web_search"}]})
    assert reply.status == 200 and reply.headers["Warning"] == '299 bankml "not supported and left out: tools[1]"'


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"), ({"background": True}, "'background'"),
        ({"conversation": "c"}, "'conversation'"), ({"truncation": "auto"}, "'truncation'"),
        ({"include": ["message.output_text.logprobs"]}, "'include'"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"tool_choice": {"type": "web_search"}}, "'tool_choice'"), ({"top_logprobs": 3}, "'top_logprobs'"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "'item'"), ({"input": [5]}, "'input'"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "image input is not supported"),
        ({"input": []}, "'messages' is empty"),
    ],
)  # fmt: skip
def test_what_is_refused_by_name(more, why):
    with pytest.raises(RequestError, match=why):
        read_responses(json.dumps({"input": "x", **more}).encode())


def test_tokens_are_counted():
    _, reply = asked({"input": "Hi"}, "/v1/responses/input_tokens")
    assert reply.json == {"object": "response.input_tokens", "input_tokens": len("Q:Hi\nA:")}
    _, reply = asked({"messages": [{"role": "user", "content": "Hi"}]}, "/chat/completions/input_tokens")
    assert reply.json == {"object": "response.input_tokens", "input_tokens": len("Q:Hi\nA:")}
