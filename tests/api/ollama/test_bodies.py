"""The bodies of /api/chat and /api/generate: what is read, what is the same as nothing, and what is refused."""

import json

import pytest
from ollama._types import ChatRequest, GenerateRequest

from bankml.api.ollama.chat_request import read_chat
from bankml.api.ollama.durations import FOREVER
from bankml.api.ollama.generate_request import GENERATE_UNSUPPORTED, read_generate
from bankml.api.ollama.request import UNSUPPORTED as CHAT_UNSUPPORTED
from bankml.errors import RequestError
from bankml.grammar.constraint import ConstraintSpec
from bankml.library.request import ResponseOptions
from bankml.sampling.overrides import SamplingOverrides

HI = [{"role": "user", "content": "Hi"}]


def chat(**body):
    return read_chat(json.dumps({"model": "m", **body}).encode())


def generate(**body):
    return read_generate(json.dumps({"model": "m", **body}).encode())


def test_ollamas_defaults():
    for asked in (chat(messages=HI), generate(prompt="x")):
        assert (asked.model, asked.keep_alive, asked.truncate, asked.num_ctx) == ("m", None, True, None)
        assert asked.generation.response == ResponseOptions(stream=True, whole_calls=True)
        assert asked.generation.sampling == SamplingOverrides() and not asked.generation.constraint
    assert chat().generation is None is generate().generation


def test_the_clients_zero_values_ask_for_nothing():
    """Go and Python clients may send every field they know, with what it is when nobody set it."""
    zero = {
        "format": "", "options": {}, "tools": [], "images": [], "suffix": "", "system": "",
        "template": "", "context": [], "raw": False, "logprobs": False, "top_logprobs": 0, "stream": False,
    }  # fmt: skip
    assert chat(messages=HI, **zero) == chat(messages=HI, stream=False)
    assert generate(prompt="x", **zero) == generate(prompt="x", stream=False)
    assert chat(messages=None, format=None, options=None, tools=None, keep_alive=None) == chat()


def test_every_field_of_the_python_client_is_known():
    read = {"model", "stream", "options", "format", "keep_alive", "logprobs", "top_logprobs", "messages", "prompt"}
    read |= {"think"}
    assert set(ChatRequest.model_fields) <= read | {"tools"} | set(CHAT_UNSUPPORTED)
    assert set(GenerateRequest.model_fields) <= read | {"system", "raw", "suffix"} | set(GENERATE_UNSUPPORTED)


@pytest.mark.parametrize(
    ("format_", "schema"),
    [
        (None, None), ("", None), ("json", {"type": "object"}), ({}, {"type": "object"}),
        ({"type": "array"}, {"type": "array"}),
    ],
)  # fmt: skip
def test_a_format_constrains_the_answer(format_, schema):
    assert chat(messages=HI, format=format_).generation.constraint == ConstraintSpec(schema)


def test_logprobs():
    assert chat(messages=HI).logprobs is None and chat(messages=HI).generation.sampling.n_probs is None
    for more, count in (({}, 1), ({"top_logprobs": 0}, 1), ({"top_logprobs": 20}, 20)):
        assert chat(messages=HI, logprobs=True, **more).generation.sampling.n_probs == count


@pytest.mark.parametrize(("value", "seconds"), [("5m", 300), (0, 0), ("0", 0), (-1, FOREVER), ("-1s", FOREVER)])
def test_keep_alive(value, seconds):
    assert chat(keep_alive=value).keep_alive == seconds


def test_messages_are_those_of_v1():
    given = [
        {"role": "system", "content": "s"}, {"role": "User", "content": None}, {"role": "user"},
        {"role": "assistant", "content": "a", "thinking": "t", "tool_calls": [], "images": []},
        {"role": "user", "content": "u", "tool_name": "", "odd": 1},
    ]  # fmt: skip
    assert chat(messages=given).generation.prompt.messages == [
        {"role": "system", "content": "s"}, {"role": "user", "content": ""}, {"role": "user", "content": ""},
        {"role": "assistant", "content": "a", "reasoning_content": "t"}, {"role": "user", "content": "u"},
    ]  # fmt: skip


def test_tools_and_their_results_are_those_of_v1():
    call = {"function": {"name": "f", "arguments": {"a": "é"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    given = [*HI, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "1", "tool_name": "f"}]
    conversation = chat(messages=given, tools=[tool]).generation.prompt
    assert conversation.messages[1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"a":"é"}'}}],
        },
        {"role": "tool", "content": "1", "name": "f"},
    ]
    assert [one["function"]["name"] for one in conversation.tools] == ["f"]


@pytest.mark.parametrize(
    ("think", "enabled", "seen"),
    [(None, None, {}), (True, True, {}), (False, False, {}), ("high", True, {"reasoning_effort": "high"})],
)
def test_thinking(think, enabled, seen):
    for asked in (chat(messages=HI, think=think), generate(prompt="x", think=think)):
        conversation = asked.generation.prompt
        assert (conversation.enable_thinking, conversation.template_arguments) == (enabled, seen)


CHAT_REFUSED = [
    ({"tools": [{"type": "function"}]}, "Failed to parse tools: Missing tool function"),
    ({"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "Field 'messages[0].images': images"),
    ({"messages": [*HI, {"role": "assistant", "tool_calls": [{}]}]}, "Field 'messages[1].tool_calls[0].function'"),
    ({"messages": [*HI, {"role": "assistant", "tool_calls": {}}]}, "Field 'messages[1].tool_calls': expected an array"),
    (
        {"messages": [*HI, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]},
        "Field 'messages[1].tool_calls[0].function.arguments': expected an object",
    ),
    ({"messages": [{"role": "narrator", "content": "x"}]}, "Field 'messages[0].role': expected one of system, user"),
    ({"messages": [{"content": "x"}]}, "Field 'messages[0].role'"),
    ({"messages": ["x"]}, "Field 'messages[0]': expected an object"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "Field 'messages[0].content': expected a string"),
    ({"messages": {"role": "user"}}, "Field 'messages': expected an array"),
]
GENERATE_REFUSED = [
    ({"suffix": 1}, "Field 'suffix'"),
    ({"suffix": "x", "system": "y"}, "Field 'system'"),
    ({"template": "{{ .Prompt }}"}, "Field 'template'"),
    ({"context": [1, 2]}, "Field 'context'"),
    ({"images": ["aGk="]}, "Field 'images'"),
    ({"raw": True, "format": "json"}, "Field 'format': a raw prompt"),
    ({"raw": True, "system": "x"}, "Field 'system': a raw prompt"),
    ({"raw": "yes"}, "Field 'raw'"),
    ({"prompt": 5}, "Field 'prompt'"),
    ({"width": 512}, "Field 'width': images are not made"),
]
BOTH_REFUSED = [
    ({"think": "hard"}, "Field 'think': expected true, false, "),
    ({"think": 1}, "Field 'think'"),
    ({"shift": True}, "Field 'shift'"),
    ({"format": "yaml"}, 'Field \'format\': expected "json" or a JSON schema, but got "yaml"'),
    ({"format": [1]}, "Field 'format'"),
    ({"format": True}, "Field 'format'"),
    ({"logprobs": 1}, "Field 'logprobs'"),
    ({"logprobs": True, "top_logprobs": 21}, "Field 'top_logprobs'"),
    ({"logprobs": True, "top_logprobs": -1}, "Field 'top_logprobs'"),
    ({"top_logprobs": 3}, "top_logprobs requires logprobs"),
    ({"keep_alive": "soon"}, "Field 'keep_alive'"),
    ({"keep_alive": False}, "Field 'keep_alive'"),
    ({"options": []}, "Field 'options': expected an object"),
    ({"options": {"mirostat": "2"}}, "Field 'options.mirostat'"),
    ({"temperature": 0}, "Field 'temperature': this is an option: it belongs inside 'options'"),
    ({"stream": "no"}, "Field 'stream'"),
    ({"model": ""}, "model is required"),
    ({"model": None}, "model is required"),
    ({"model": 5}, "Field 'model'"),
]


@pytest.mark.parametrize(("body", "why"), CHAT_REFUSED + BOTH_REFUSED)
def test_what_a_chat_cannot_be(body, why):
    with pytest.raises(RequestError) as found:
        chat(**{"messages": HI, **body})
    assert why in found.value.message


@pytest.mark.parametrize(("body", "why"), GENERATE_REFUSED + BOTH_REFUSED)
def test_what_a_prompt_cannot_be(body, why):
    with pytest.raises(RequestError) as found:
        generate(**{"prompt": "Hi", **body})
    assert why in found.value.message


def test_unknown_fields_are_ignored_as_in_ollama():
    assert chat(messages=HI, user="me", metadata={}) == chat(messages=HI)
