"""`POST /v1/messages`: the chat of the same conversation, in Anthropic's form."""

import json

import pytest

from bankml.api.reading.anthropic import chat_body, read_messages_request
from bankml.errors import RequestError
from bankml.receipt.check import check
from tests.api.api_toys import ToyModel, ask, toy_application
from tests.api.test_responses import named_events

PATH = "/v1/messages"
HI = [{"role": "user", "content": "Hi"}]
TOOL = {"name": "now", "description": "The time.", "input_schema": {"type": "object"}}


def asked(body, path=PATH, **parts):
    sent = json.dumps(body).encode()
    return sent, ask(toy_application(**parts), path, sent)


def test_a_message_with_a_receipt():
    sent, reply = asked({"messages": HI, "max_tokens": 3, "system": [{"type": "text", "text": "Be brief."}]})
    value = reply.json
    assert value["content"] == [{"type": "text", "text": "Osl"}] and value["stop_reason"] == "max_tokens"
    assert (value["type"], value["role"], value["stop_sequence"]) == ("message", "assistant", None)
    usage = {"cache_read_input_tokens": 0, "input_tokens": len("Q:Be brief.\nQ:Hi\nA:"), "output_tokens": 3}
    assert value["usage"] == usage
    checked = check(sent, reply.body)
    assert checked.ok and checked.text == "Osl"


def test_a_stop_string_is_named():
    for stream in (False, True):
        sent, reply = asked({"messages": HI, "stop_sequences": ["lo"], "stream": stream})
        ended = named_events(reply)[-2]["delta"] if stream else reply.json
        assert (ended["stop_reason"], ended["stop_sequence"]) == ("stop_sequence", "lo")
        assert check(sent, reply.body).text == "Os"


def test_a_stream():
    sent, reply = asked({"messages": HI, "stream": True})
    events = named_events(reply)
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert events[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[0]["message"]["usage"]["input_tokens"] == len("Q:Hi\nA:")
    checked = check(sent, reply.body)
    assert checked.ok and checked.text == "Oslo." and checked.receipt["finish_reason"] == "end_turn"


@pytest.mark.parametrize(
    "change", [("Os", "Ro"), ("end_turn", "max_tokens"), ('"output_tokens": 6', '"output_tokens": 5')]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_changed_answer_does_not_fit_the_receipt(stream, change):
    sent, reply = asked({"messages": HI, "stream": stream})
    body = reply.body.decode().replace('"O"', '"Os"').replace('"s"', '""') if stream else reply.body.decode()
    assert check(sent, body.encode()).ok
    before, _, receipt = body.partition('"bankml_receipt"')
    assert not check(sent, (before.replace(*change) + '"bankml_receipt"' + receipt).encode()).ok


def test_an_error_in_a_stream_has_anthropics_form():
    def next_token(context):
        if len(context) > 10:
            raise RuntimeError
        return ord("x")

    _, reply = asked({"messages": HI, "stream": True}, model=ToyModel(next_token))
    last = named_events(reply)[-1]
    assert last["type"] == "error" and last["error"]["type"] == "server_error"
    _, reply = asked({"messages": 5})
    assert reply.json["type"] == "error" and reply.status == 400


def test_blocks_become_messages():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "u", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": ""},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "c", "name": "now", "input": {"zone": "é"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "12:00"}]},
                {"type": "text", "text": "so?"},
            ],
        },
    ]
    call = {"type": "function", "function": {"name": "now", "arguments": '{"zone":"é"}'}, "id": "c"}
    said = {"content": [{"type": "text", "text": "a"}], "tool_calls": [call], "reasoning_content": "t"}
    assert chat_body({"messages": messages})["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {"role": "assistant", **said},
        {"role": "user", "content": [{"type": "text", "text": "so?"}]},
        {"role": "tool", "tool_call_id": "c", "content": "12:00"},
    ]


def test_what_is_meant_by_other_names():
    def read(**more):
        return read_messages_request(json.dumps({"messages": HI, **more}).encode())

    asks = read(seed=7, top_k=3, tools=[TOOL], tool_choice={"type": "tool", "name": "now"})
    assert (asks.sampling.seed, asks.sampling.top_k, asks.prompt.called, asks.max_tokens) == (7, 3, "now", 4096)
    assert read(tools=[TOOL], tool_choice={"type": "any"}).prompt.tool_choice == "required"
    assert read(tools=[TOOL], tool_choice={"type": "none"}).prompt.tool_choice == "none"
    single = read(tools=[TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert single.prompt.parallel_tool_calls is False
    thinks = read(thinking={"type": "enabled", "budget_tokens": 9})
    assert thinks.prompt.enable_thinking is True and thinks.thought.tokens == 9
    assert read(thinking={"type": "disabled"}).prompt.enable_thinking is False
    assert read(thinking={"type": "adaptive"}).prompt.enable_thinking is None


def test_the_hash_of_a_billing_header_is_made_constant():
    system = "x-anthropic-billing-header: cc_version=1; cch=a5145;You are"
    wanted = "x-anthropic-billing-header: cc_version=1; cch=fffff;You are"
    assert chat_body({"messages": HI, "system": system})["messages"][0]["content"] == wanted
    assert chat_body({"messages": HI, "system": "cch=a5145;"})["messages"][0]["content"] == "cch=a5145;"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"messages": "x"}, "'messages'"), ({"container": "c"}, "'container'"),
        ({"mcp_servers": [{}]}, "'mcp_servers'"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, r"tools\[0\].type"),
        ({"tools": [{}]}, r"tools\[0\].name"),
        ({"tool_choice": {"type": "x"}}, "tool_choice.type"), ({"thinking": {"type": "x"}}, "thinking.type"),
        ({"system": [{"type": "image"}]}, r"system\[0\]"), ({"stop_sequences": "x"}, "'stop_sequences'"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, r"messages\[0\].content\[0\].type"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "image input is not supported"),
        ({"messages": [{"role": "user"}]}, "must contain 'content'"), ({"n_probs": 3}, "'n_probs'"),
    ],
)  # fmt: skip
def test_what_is_refused_by_name(more, why):
    with pytest.raises(RequestError, match=why):
        read_messages_request(json.dumps({"messages": HI, **more}).encode())


def test_tokens_are_counted():
    _, reply = asked({"messages": HI, "system": "s"}, "/v1/messages/count_tokens")
    assert reply.json == {"input_tokens": len("Q:s\nQ:Hi\nA:")}
