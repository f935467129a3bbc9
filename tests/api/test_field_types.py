"""Every known field of a request with every wrong type: an error that names the field, never a silent pass."""

import json

import pytest

from bankml.api.ollama.chat_request import read_chat as read_ollama_chat
from bankml.api.ollama.generate_request import read_generate
from bankml.api.reading.anthropic import read_messages_request
from bankml.api.reading.generation import READ_IF, read_chat, read_completion, read_text_completion
from bankml.api.reading.infill import read_infill
from bankml.api.reading.responses import read_responses
from bankml.api.routes import NativeApplication
from bankml.engine.slot_folder import SlotFolder
from bankml.errors import BankmlError
from bankml.http.exchange import Request
from tests.api.api_toys import MemoryReply, ask, toy_application, toy_library, toy_ollama, toy_resident

HI = [{"role": "user", "content": "hi"}]
VALUES = {
    "boolean": [True, False],
    "number": [7, 1.5],
    "string": ["x"],
    "array": [["x"], [1]],
    "object": [{"a": 1}],
}

# Field -> the types that it takes. A value of another type must be refused.
COMMON = {
    "stream": "boolean", "stream_options": "object", "max_tokens": "number", "n_predict": "number",
    "max_completion_tokens": "number", "stop": "string array", "cache_prompt": "boolean", "model": "string",
    "temperature": "number", "top_k": "number", "top_p": "number", "min_p": "number", "top_n_sigma": "number",
    "xtc_probability": "number", "xtc_threshold": "number", "typical_p": "number", "dynatemp_range": "number",
    "dynatemp_exponent": "number", "repeat_last_n": "number", "repeat_penalty": "number", "frequency_penalty": "number",
    "presence_penalty": "number", "dry_multiplier": "number", "dry_base": "number", "dry_allowed_length": "number",
    "dry_penalty_last_n": "number", "dry_sequence_breakers": "array", "mirostat": "number", "mirostat_tau": "number",
    "mirostat_eta": "number", "adaptive_target": "number", "adaptive_decay": "number", "seed": "number",
    "min_keep": "number", "n_probs": "number boolean", "post_sampling_probs": "boolean", "ignore_eos": "boolean",
    "samplers": "array string", "logit_bias": "object array", "backend_sampling": "boolean", "grammar": "string",
    "n": "number", "n_cmpl": "number", "verbose": "boolean", "timings_per_token": "boolean", "return_tokens": "boolean",
    "return_progress": "boolean", "sse_ping_interval": "number", "n_keep": "number", "n_discard": "number",
    "reasoning_control": "boolean", "id_slot": "number", "lora": "", "n_indent": "number", "t_max_predict_ms": "number",
    "n_cache_reuse": "number", "audio": "", "modalities": "", "functions": "", "function_call": "",
    "guided_json": "object", "guided_choice": "array",
    "guided_grammar": "string", "guided_regex": "", "structured_outputs": "",
}  # fmt: skip
CHAT = {
    **COMMON, "messages": "array", "response_format": "object", "chat_template_kwargs": "object",
    "reasoning_effort": "string", "add_generation_prompt": "boolean", "continue_final_message": "boolean string",
    "tools": "array", "tool_choice": "string object", "parallel_tool_calls": "boolean", "top_logprobs": "",
    "logprobs": "boolean number", "reasoning_format": "", "response_fields": "", "best_of": "number", "prediction": "",
    "web_search_options": "", "service_tier": "", "echo": "boolean", "parse_tool_calls": "boolean",
    "json_schema": "object", "reasoning_budget_tokens": "number", "thinking_budget_tokens": "number",
    "reasoning_budget_message": "string",
}  # fmt: skip
COMPLETION = {
    **COMMON, "prompt": "string array object", "response_fields": "array", "logprobs": "number boolean",
    "response_format": "", "grammar_lazy": "boolean", "grammar_triggers": "",
    "preserved_tokens": "", "generation_prompt": "", "reasoning_budget_start_tag": "",
}  # fmt: skip
TEXT = {**COMPLETION, "suffix": "string", "echo": "boolean", "best_of": "number"}
INFILL = {
    **{name: types for name, types in COMPLETION.items() if name != "prompt"},
    "prompt": "string", "input_prefix": "string array", "input_suffix": "string array", "input_extra": "",
}  # fmt: skip
NOT_COMMON = ("max_tokens", "n_predict", "max_completion_tokens", "stop", "n_probs", "cache_prompt")
SAMPLING = {name: types for name, types in COMMON.items() if name not in NOT_COMMON}
RESPONSES = {
    **SAMPLING, "input": "string", "instructions": "string", "tools": "", "tool_choice": "string",
    "max_output_tokens": "number", "reasoning": "object", "text": "object", "include": "array",
    "previous_response_id": "string", "background": "boolean", "conversation": "", "max_tool_calls": "", "prompt": "",
    "truncation": "", "logprobs": "boolean", "n_probs": "", "top_logprobs": "", "parallel_tool_calls": "boolean",
    "chat_template_kwargs": "object",
}  # fmt: skip
MESSAGES = {
    **SAMPLING, "messages": "array", "system": "string", "tools": "", "tool_choice": "object", "max_tokens": "number",
    "stop_sequences": "array", "thinking": "object", "metadata": "object", "container": "", "mcp_servers": "",
    "logprobs": "boolean", "n_probs": "", "top_logprobs": "", "chat_template_kwargs": "object",
}  # fmt: skip
OPTIONS = {
    "temperature": "number", "top_k": "number", "top_p": "number", "min_p": "number", "typical_p": "number",
    "min_keep": "number", "seed": "number", "repeat_last_n": "number", "repeat_penalty": "number",
    "presence_penalty": "number", "frequency_penalty": "number", "mirostat": "number", "mirostat_tau": "number",
    "mirostat_eta": "number", "num_predict": "number", "num_ctx": "number", "stop": "string array",
    "tfs_z": "", "penalize_newline": "boolean",
}  # fmt: skip
OLLAMA = {
    "model": "string", "stream": "boolean", "keep_alive": "number string", "options": "object", "format": "object",
    "logprobs": "boolean", "top_logprobs": "", "truncate": "boolean", "think": "boolean", "images": "", "shift": "",
}  # fmt: skip

ROUTES = {
    "chat": (read_chat, {"messages": HI}, CHAT),
    "completion": (read_completion, {"prompt": "hi"}, COMPLETION),
    "text completion": (read_text_completion, {"prompt": "hi"}, TEXT),
    "ollama chat": (
        read_ollama_chat,
        {"model": "m", "messages": HI},
        {**OLLAMA, "messages": "array", "tools": "array"},
    ),
    "ollama generate": (
        read_generate,
        {"model": "m", "prompt": "hi"},
        {
            **OLLAMA,
            "prompt": "string",
            "system": "string",
            "raw": "boolean",
            "suffix": "string",
            "template": "",
            "context": "",
        },
    ),
    "infill": (read_infill, {"input_prefix": "a", "input_suffix": "b"}, INFILL),
    "responses": (read_responses, {"input": "hi"}, RESPONSES),
    "messages": (read_messages_request, {"messages": HI}, MESSAGES),
}
CASES = [(route, field) for route, (_, _, fields) in ROUTES.items() for field in fields]
HARMLESS = {
    ("id_slot", 0), ("think", False), ("shift", False), ("echo", False), ("function_call", "x"),
}  # fmt: skip
"""Values of no effect that a field takes beside its types."""


def wrong_values(field, types):
    harmless = [one for name, one in HARMLESS if name == field]
    values = [value for kind, values in VALUES.items() if kind not in types.split() for value in values]
    return [value for value in values if not any(type(value) is type(one) and value == one for one in harmless)]


@pytest.mark.parametrize(("route", "field"), CASES)
def test_a_value_of_the_wrong_type_is_refused(route, field):
    read, body, fields = ROUTES[route]
    for value in wrong_values(field, fields[field]):
        sent = json.dumps({**body, field: value}).encode()
        if field in READ_IF and (route, field) != ("responses", "tool_choice") and route != "messages":
            assert field in read(sent).response.left_out, value
            continue
        with pytest.raises(BankmlError) as refusal:
            read(sent)
        assert 400 <= refusal.value.status < 500 or refusal.value.status == 501, value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, types in OPTIONS.items()
        for kind, values in VALUES.items()
        if kind not in types.split()
        for value in values
    ],
)
def test_an_option_of_the_wrong_type_is_refused(name, value):
    with pytest.raises(BankmlError, match=rf"options\.{name}"):
        read_ollama_chat(json.dumps({"model": "m", "messages": HI, "options": {name: value}}).encode())


@pytest.mark.parametrize("route", ROUTES)
def test_null_is_the_same_as_leaving_a_field_out(route):
    read, body, fields = ROUTES[route]
    nulls = dict.fromkeys(name for name in fields if name not in body)
    assert read(json.dumps({**body, **nulls}).encode()) == read(json.dumps(body).encode())


TEXT_FIELDS = {
    "/tokenize": {
        "content": "string array", "add_special": "boolean", "parse_special": "boolean", "with_pieces": "boolean",
        "model": "string",
    },
    "/detokenize": {"tokens": "array", "model": "string"},
    "/v1/chat/completions/control": {"id": "string", "action": ""},
    "/api/show": {"model": "string", "verbose": "boolean"},
}  # fmt: skip
TEXT_BODIES = {
    "/tokenize": {"content": "x"},
    "/detokenize": {"tokens": [65]},
    "/v1/chat/completions/control": {"id": "chatcmpl-x", "action": "reasoning_end"},
    "/api/show": {"model": "toy-1m"},
}


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (path, field, value)
        for path, fields in TEXT_FIELDS.items()
        for field, types in fields.items()
        for kind, values in VALUES.items()
        if kind not in types.split()
        for value in values
    ],
)
def test_a_text_endpoint_refuses_it_too(path, field, value):
    reply = ask(toy_ollama()[0], path, {**TEXT_BODIES[path], field: value})
    assert 400 <= reply.status < 500, reply.body


@pytest.mark.parametrize("query", ["", "action=", "action=x", "action=save&action=erase", "action=save"])
@pytest.mark.parametrize("filename", [True, 7, ["x"], {"a": 1}, "", "a/b"])
def test_a_slots_action_and_file_are_checked(query, filename, tmp_path):
    application = NativeApplication(toy_library(toy_resident()), SlotFolder(str(tmp_path)))
    reply = MemoryReply()
    body = json.dumps({"filename": filename}).encode()
    application.answer(Request("POST", "/slots/0", query, {}, body, "engine", 0.0), reply)
    assert 400 <= reply.status < 500, reply.body


@pytest.mark.parametrize("value", [value for kind, values in VALUES.items() if kind != "object" for value in values])
@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_a_schema_that_is_none_is_refused_when_its_grammar_is_made(path, value):
    reply = ask(toy_application(), path, {"prompt": "A:", "json_schema": value})
    assert reply.status == 400 and "json_schema" in reply.error["message"]


@pytest.mark.parametrize("field", READ_IF)
def test_a_response_says_what_was_left_out(field):
    reply = ask(toy_application(), body={"messages": HI, field: ["x"]})
    assert reply.status == 200 and reply.headers["Warning"] == f'299 bankml "not supported and left out: {field}"'
