"""`POST /v1/completions`: the `/completion` of the same prompt, in OpenAI's form."""

import json

import pytest
from openai.types import Completion

from bankml.receipt.check import check
from tests.api.api_toys import ask, toy_application

PATH = "/v1/completions"


def text_of(reply):
    objects = reply.events if reply.content_type == "text/event-stream" else [reply.json]
    return "".join(choice["text"] for one in objects for choice in one.get("choices", []))


@pytest.mark.parametrize(
    ("more", "text", "finish"),
    [({}, "Oslo.", "stop"), ({"max_tokens": 2}, "Os", "length"), ({"stop": "lo"}, "Os", "stop")],
)
@pytest.mark.parametrize("stream", [False, True])
def test_the_text_of_a_completion_with_its_receipt(stream, more, text, finish):
    body = json.dumps({"prompt": "A:", "stream": stream, **more}).encode()
    reply = ask(toy_application(), PATH, body)
    checked = check(body, reply.body)
    assert checked.ok and checked.text == text == text_of(reply)
    *_, last = [one for one in (reply.events if stream else [reply.json]) if "choices" in one]
    assert (last["object"], last["model"], last["choices"][0]["finish_reason"]) == (
        "text_completion", "toy-1m-f16", finish,
    )  # fmt: skip
    assert last["usage"]["prompt_tokens"] == 2 and last["timings"]["prompt_n"] == 2
    assert last["choices"][0]["logprobs"] is None
    Completion.model_validate(last)
    same = ask(toy_application(), "/completion", {"prompt": "A:", **more}).json
    assert same["content"] == text
    if stream:
        assert reply.body.endswith(b"\n\ndata: [DONE]\n\n") and reply.finished


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"echo": 1}, "Field 'echo': expected true or false, but got 1"),
        ({"best_of": 2}, "Field 'best_of': one answer is computed (got 2)"),
        ({"suffix": 1}, "Field 'suffix': expected a string, but got 1"),
        ({"suffix": "x", "echo": True}, "Field 'suffix': a gap is filled without an echo of the text around it"),
        ({"n": 2}, "Field 'n': Value must be between 1 <= value <= 1, but got 2"),
        ({"prompt": None}, None),
    ],
)
def test_what_is_refused(more, message):
    reply = ask(toy_application(), PATH, {"prompt": "A:", **more})
    assert reply.status == 400 and (message is None or reply.error["message"] == message)


def test_harmless_values_are_taken():
    assert text_of(ask(toy_application(), PATH, {"prompt": "A:", "echo": False, "best_of": 1, "suffix": ""})) == "Oslo."
