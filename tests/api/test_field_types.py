"""Every known field of a request with every wrong type: an error that names the field, never a silent pass."""

import json

import pytest

from bankml.api.ollama.chat_request import read_chat as read_ollama_chat
from bankml.api.ollama.generate_request import read_generate
from bankml.api.reading.generation import read_chat, read_completion, read_text_completion
from bankml.errors import BankmlError

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
    "tools": "array", "top_logprobs": "", "reasoning_format": "", "response_fields": "", "best_of": "number",
    "prediction": "", "web_search_options": "", "service_tier": "",
}  # fmt: skip
COMPLETION = {**COMMON, "prompt": "string array object", "response_fields": "array"}
TEXT = {**COMPLETION, "suffix": "", "echo": "boolean", "best_of": "number"}
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
            "suffix": "",
            "template": "",
            "context": "",
        },
    ),
}
CASES = [
    (route, field, value)
    for route, (_, _, fields) in ROUTES.items()
    for field, types in fields.items()
    for kind, values in VALUES.items()
    if kind not in types.split()
    for value in values
]
HARMLESS = {
    ("id_slot", 0), ("think", False), ("shift", False), ("echo", False), ("function_call", "x"),
}  # fmt: skip
"""Values of no effect that a field takes beside its types."""


@pytest.mark.parametrize(("route", "field", "value"), CASES)
def test_a_value_of_the_wrong_type_is_refused(route, field, value):
    read, body, _ = ROUTES[route]
    if (field, value) in [(name, one) for name, one in HARMLESS if type(one) is type(value)]:
        pytest.skip("a value without effect")
    with pytest.raises(BankmlError) as refusal:
        read(json.dumps({**body, field: value}).encode())
    assert 400 <= refusal.value.status < 500 or refusal.value.status == 501


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
