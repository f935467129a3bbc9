"""What receipts cover of a message: every member that clients read; a 502 for what they cannot cover."""

import copy
import json

import pytest

from bankml.receipt.check import check
from bankml.receipt.messages import ChatMessages
from tests.upstream.front import BODY, STREAMED, House
from tests.upstream.standin import DONE, answer, streamed

CALL = {"type": "function", "id": "c1", "function": {"name": "shell", "arguments": '{"cmd":"ls"}'}}
MESSAGE = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "I list."}
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
DELTAS = (
    {"role": "assistant", "content": None},
    {"reasoning_content": "I "},
    {"reasoning_content": "list."},
    {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "shell", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"cmd":'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '"ls"}'}}]},
)


def whole(*messages, finish="tool_calls", indices=None):
    choices = [
        {"finish_reason": finish, "index": index, "message": message}
        for index, message in zip(indices or range(len(messages)), messages, strict=True)
    ]
    return json.dumps({"choices": choices, "object": "chat.completion", "usage": USAGE}).encode()


def events(*deltas, finish="tool_calls"):
    parts = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    parts.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": USAGE})
    return streamed([*(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts), DONE])


@pytest.fixture
def chat(tmp_path):
    def ask(response, body=BODY):
        with House(tmp_path / "m.gguf", chat=response) as it:
            return it.chat(body)

    return ask


def test_a_tool_call_is_covered_whole_and_streamed_alike(chat):
    status, got = chat(answer(whole(MESSAGE)))
    receipt = json.loads(got)["bankml_receipt"]
    assert status == 200 and check(BODY, got).ok and receipt["finish_reason"] == "tool_calls"
    status, stream = chat(events(*DELTAS), STREAMED)
    checked = check(STREAMED, stream)
    assert status == 200 and checked.ok, checked.problems
    assert checked.receipt["message_sha256"] == receipt["message_sha256"]


def test_plain_text_has_no_further_hash(chat):
    _, got = chat(answer(whole({"role": "assistant", "content": "Hi"}, finish="stop")))
    assert "message_sha256" not in json.loads(got)["bankml_receipt"] and check(BODY, got).ok


def changed(path, value):
    def change(found):
        at = found["choices"][0]
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


CHANGES = {
    "arguments": changed(("message", "tool_calls", 0, "function", "arguments"), '{"cmd":"rm -rf ~"}'),
    "name": changed(("message", "tool_calls", 0, "function", "name"), "exec"),
    "id": changed(("message", "tool_calls", 0, "id"), "c2"),
    "call removed": changed(("message", "tool_calls"), None),
    "call added": changed(("message", "tool_calls"), [CALL, CALL]),
    "reasoning": changed(("message", "reasoning_content"), "evil"),
    "reasoning removed": changed(("message", "reasoning_content"), None),
    "refusal added": changed(("message", "refusal"), "no"),
    "content": changed(("message", "content"), "x"),
    "role": changed(("message", "role"), "user"),
    "finish_reason": changed(("finish_reason",), "stop"),
    "finish_reason removed": changed(("finish_reason",), None),
    "another member": changed(("message", "audio"), {"data": "x"}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("message", [MESSAGE, {"role": "assistant", "content": "Hi"}], ids=["a call", "plain"])
def test_check_notices_every_change(chat, change, message):
    _, got = chat(answer(whole(message)))
    found = json.loads(got)
    original = copy.deepcopy(found)
    try:
        CHANGES[change](found)
    except (KeyError, IndexError):
        pytest.skip("this message has no such member")
    assert found != original and check(BODY, got).ok
    assert not check(BODY, json.dumps(found).encode()).ok


def test_several_choices_are_covered(chat):
    _, got = chat(answer(whole({"content": "a"}, {"content": "b"}, finish="stop")))
    assert check(BODY, got).ok and "message_sha256" in json.loads(got)["bankml_receipt"]
    found = json.loads(got)
    found["choices"][0]["index"], found["choices"][1]["index"] = 1, 0
    assert not check(BODY, json.dumps(found).encode()).ok


LONE = {"tool_calls": [{"id": "\ud83d", "function": {"name": "a", "arguments": ""}}]}
REFUSED = {
    "two choices have the index 0": whole({"content": "a"}, {"content": "b"}, indices=(0, 0)),
    "content is not text": whole({"content": [{"type": "text", "text": "a"}]}),
    "reasoning_content is not text": whole({"content": "a", "reasoning_content": 5}),
    'a message has "audio", which no receipt covers': whole({"content": "a", "audio": {"id": "x"}}),
    "an index is not a number from 0": whole({"content": "a"}, indices=("0",)),
    "tool_calls is not a list": whole({"content": None, "tool_calls": "a"}),
    "a lone surrogate": whole(LONE),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_no_receipt_covers_is_a_502(chat, says):
    status, got = chat(answer(REFUSED[says]))
    error = json.loads(got)["error"]
    assert status == 502 and says in error["message"] and b'receipt"' not in got


def test_a_delta_that_no_receipt_covers_ends_the_stream_without_one(chat):
    status, got = chat(events({"content": "a"}, {"audio": {"id": "x"}}), STREAMED)
    assert status in (200, 502), "as an event, or instead of a stream that has not begun"
    assert b"bankml_receipt" not in got and b"which no receipt covers" in got


CALL = {"id": "c", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}


@pytest.mark.parametrize(
    "answer_",
    [
        {"message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "done": True, "done_reason": "stop"},
        {"message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": True, "done_reason": "stop"},
        {"response": "", "thinking": "hm", "done": True, "done_reason": "stop"},
    ],
)
def test_members_of_ollamas_messages_are_covered(answer_):
    messages = ChatMessages()
    messages.add(answer_)
    receipt = {"message_sha256": messages.sha256(), "finish_reason": "stop"}
    changed = json.loads(json.dumps(answer_).replace('"hm"', '"hmm"').replace('{"a": 1}', '{"a": 2}'))
    for sent, right in ((answer_, True), (changed, False)):
        problems = check(b"{}", json.dumps(sent | {"bankml_receipt": receipt}).encode()).problems
        assert any("message_sha256" in problem for problem in problems) is not right


def test_unknown_members_of_ollamas_messages_are_not_covered():
    answer_ = {"message": {"role": "assistant", "content": "", "poem": "x"}, "done": True, "bankml_receipt": {}}
    problems = check(b"{}", json.dumps(answer_).encode()).problems
    assert any("which no receipt covers" in problem for problem in problems)
