"""`POST /v1/chat/completions/control` ends a thought while its answer is generated."""

import json

import pytest

from bankml.api.routes import NativeApplication
from bankml.receipt.check import check
from tests.answers.recorded import kept
from tests.api.api_toys import CHAT, MemoryReply, ask, toy_application, toy_library, toy_resident, user
from tests.engine.engine_toys import END, ToyModel

PATH = "/v1/chat/completions/control"
TEMPLATE = kept()["templates"]["Qwen-Qwen3-0.6B"]
THINKS = {"stream": True, "max_tokens": 200, "chat_template_kwargs": {"enable_thinking": True}}


def thinking(context):
    """Opens a thought and never ends it; behind its end says "Done."."""
    text = bytes(t for t in context if t < 256).rpartition(b"A:")[2]
    begun = b"<think>\n"
    if len(text) < len(begun):
        return begun[len(text)]
    _, ended, said = text.partition(b"</think>")
    if not ended:
        return ord("x")
    rest = b"\n\nDone."
    return rest[len(said)] if len(said) < len(rest) else END


class ActingReply(MemoryReply):
    """Asks for something after some events of its stream."""

    act = None

    def write(self, data):
        done = super().write(data)
        if self.act is not None and len(self.writes) == 20:
            self.act(self.events[0]["id"])
        return done


def streamed(act, **fields):
    resident = toy_resident(model=ToyModel(thinking), template=TEMPLATE)
    resident.toy_template = resident.template
    application, told = NativeApplication(toy_library(resident)), []
    reply = ActingReply()
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = user("Hi", tools=tools, tool_choice="none", **THINKS | fields)
    reply.act = lambda id_: told.append(ask(application, PATH, {"id": id_, "action": act}).json)
    sent = json.dumps(body).encode()
    ask(application, CHAT, sent, reply=reply)
    deltas = [choice["delta"] for event in reply.events for choice in event["choices"]]
    reasoning = "".join(delta.get("reasoning_content") or "" for delta in deltas)
    content = "".join(delta.get("content") or "" for delta in deltas)
    assert check(sent, reply.body).ok
    return told, reasoning, content, application, reply.events[0]["id"]


def test_a_thought_is_ended_and_the_answer_goes_on():
    told, reasoning, content, application, id_ = streamed("reasoning_end", reasoning_control=True)
    assert told == [{"success": True}]
    assert set(reasoning) == {"x"} and 10 < len(reasoning) < 150 and content == "Done."  # ahead of the writer
    over = ask(application, PATH, {"id": id_, "action": "reasoning_end"})
    assert over.json == {"success": False, "message": "no active completion for this id"}


def test_without_reasoning_control_it_goes_on_thinking():
    told, reasoning, content, *_ = streamed("reasoning_end")
    assert told == [{"success": False, "message": "reasoning control not enabled for this completion"}]
    assert len(reasoning) > 40 and content == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"action": "reasoning_end"}, "missing completion id"),
        ({"id": "", "action": "reasoning_end"}, "missing completion id"),
        ({"id": "x"}, "unknown control action"),
        ({"id": "x", "action": "stop"}, "unknown control action"),
    ],
)
def test_what_is_refused(body, message):
    reply = ask(toy_application(), PATH, body)
    assert reply.status == 400 and reply.error["message"] == message
