"""The bodies of OpenAI's and llama-server's generation requests, read once into a GenerationRequest.

Unknown fields are ignored, as in llama-server. Known fields that would change the answer but are not supported are
refused by name: see UNSUPPORTED.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import UnionType
from typing import Any

from bankml.api.reading import fields
from bankml.api.reading.constraints import check_response_format, read_chat_constraint, read_completion_constraint
from bankml.api.reading.json_body import read_json, read_object
from bankml.api.reading.messages import read_conversation
from bankml.api.reading.prompts import read_prompts
from bankml.api.reading.sampling import read_sampling
from bankml.errors import RequestError
from bankml.library.request import (
    UNLIMITED,
    GenerationRequest,
    InfillPrompt,
    RawPrompt,
    ResponseOptions,
    ThoughtBudget,
)

Body = Mapping[str, Any]

THINKING_OFF = "thinking is switched off on this server"

MAX_TOKENS_FIELDS = ("n_predict", "max_completion_tokens", "max_tokens")
"""Three names of one limit; the first that is present counts, as in llama-server."""

COPIES_FIELDS = ("n_cmpl", "n")
Unsupported = Mapping[str, tuple[tuple[object, ...], str]]
"""Fields that would change the answer: the values that leave it as it is, and why any other is refused."""

UNSUPPORTED: Unsupported = {
    "functions": (([],), "functions are not supported"),
    "function_call": (("none", "auto"), "functions are not supported"),
    "lora": (([],), "LoRA adapters are not supported"),
    "n_indent": ((0,), "indentation limits are not supported"),
    "t_max_predict_ms": ((-1, 0), "time limits are not supported"),
    "n_cache_reuse": ((0,), "reuse of shifted chunks of the cache is not supported"),
    "response_fields": (([],), "it is for /completion"),
    "audio": ((), "audio is not supported"),
    "best_of": ((1,), "one answer is computed"),
    "prediction": ((), "predicted outputs are not supported"),
    "web_search_options": ((), "web search is not supported"),
    "service_tier": (("auto", "default", "flex", "priority"), "there is one service tier"),
    "modalities": ((["text"],), "only text is supported"),
}

COMPLETION_UNSUPPORTED: Unsupported = {
    **{name: rule for name, rule in UNSUPPORTED.items() if name not in ("response_fields", "best_of")},
    "response_format": (
        ({"type": "text"},),
        'it is for /v1/chat/completions; here, "json_schema" is the schema itself',
    ),
    "grammar_lazy": ((False,), "grammars that begin to hold at a trigger are not supported"),
    "grammar_triggers": (([],), "grammars that begin to hold at a trigger are not supported"),
    "preserved_tokens": (([],), "control tokens have no text in an answer"),
    "generation_prompt": (("",), "a grammar begins with the first token that is drawn"),
    "reasoning_budget_start_tag": (("",), "limits of a thought's length are not supported"),
}

TEXT_COMPLETION_UNSUPPORTED: Unsupported = {
    "best_of": ((1,), "one answer is computed"),
}

FLAGS = (
    "verbose",
    "timings_per_token",
    "return_progress",
    "return_tokens",
    "parse_tool_calls",
    "echo",
    "reasoning_control",
)
COUNTS = {"n_keep": -1, "n_discard": 0}
"""Known fields that no answer depends on here: booleans, and whole numbers with the least of each. A value of another
type is an error all the same, as in llama-server."""

MOST_STOPS = 1024
"""Stop strings of one request: each is searched for at every token."""


def read_chat(data: bytes, parallel: int = 1) -> GenerationRequest:
    """Reads the body of `POST /v1/chat/completions`, for up to `parallel` answers. Raises RequestError with one
    sentence: the field, what is accepted and what was received."""
    return chat_request(read_body(data), parallel)


def read_body(data: bytes) -> dict[str, Any]:
    """The JSON object of a chat request's body. Raises RequestError with one sentence."""
    value = read_json(data)
    if isinstance(value, list):
        raise RequestError("'messages' is required")
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object with 'messages'")
    return value


def chat_request(body: Body, parallel: int = 1) -> GenerationRequest:
    """The chat request in `body`, a JSON object, for up to `parallel` answers. Raises RequestError."""
    check_response_format(body)
    refuse_unsupported(body, UNSUPPORTED)
    check_ignored(body)
    fields.string(body, "grammar")
    limits = _limits(body, parallel)
    limits["response"] = replace(limits["response"], left_out=_unread(body))
    conversation = read_conversation(body)
    return GenerationRequest(
        prompt=conversation,
        sampling=read_sampling(body),
        constraint=read_chat_constraint(body),
        thought=_thought_budget(body),
        **limits,
    )


READ_IF: Mapping[str, type | UnionType] = {
    "tool_choice": str | dict,
    "parallel_tool_calls": bool,
    "reasoning_budget_tokens": int | float,
    "thinking_budget_tokens": int | float,
}
"""Fields that count only with a value of their type, as in llama-server."""


def _unread(body: Body) -> tuple[str, ...]:
    """The fields of READ_IF that have another value: the response says that they are left out."""
    given = {name: body[name] for name in READ_IF if body.get(name) is not None}
    return tuple(
        name
        for name, value in given.items()
        if not isinstance(value, READ_IF[name]) or (isinstance(value, bool) and READ_IF[name] is not bool)
    )


def _thought_budget(body: Body) -> ThoughtBudget:
    """A value that is no number is none, as in llama-server."""
    names = ("reasoning_budget_tokens", "thinking_budget_tokens")
    unread = _unread(body)
    tokens = next((body[name] for name in names if body.get(name) is not None and name not in unread), UNLIMITED)
    if not UNLIMITED <= tokens <= fields.INT32_MAX:
        raise RequestError(
            f"Field 'reasoning_budget_tokens': Value must be between {UNLIMITED} <= value <= {fields.INT32_MAX}, "
            f"but got {tokens}"
        )
    message = fields.string(body, "reasoning_budget_message") or ""
    return ThoughtBudget(int(tokens), message, fields.boolean(body, "reasoning_control", False))


def read_completion(data: bytes, parallel: int = 1) -> GenerationRequest:
    """Reads the body of `POST /completion`. Raises RequestError with one sentence."""
    return completion_request(read_object(data), parallel)


def read_text_completion(data: bytes, parallel: int = 1) -> GenerationRequest:
    """Reads the body of `POST /v1/completions`. Raises RequestError with one sentence."""
    body = read_object(data)
    request = completion_request(body, parallel)
    refuse_unsupported(body, TEXT_COMPLETION_UNSUPPORTED)
    if suffix := fields.string(body, "suffix"):
        if body.get("echo"):
            raise fields.refuse("suffix", "a gap is filled without an echo of the text around it")
        if request.more_prompts:
            raise fields.refuse("suffix", "it is for one prompt")
        assert isinstance(request.prompt, RawPrompt)  # the body's own
        request = replace(request, prompt=InfillPrompt(request.prompt.parts, (suffix,)))
    if fields.boolean(body, "echo", False):
        if request.sampling.n_probs and request.sampling.post_sampling_probs:
            raise fields.refuse("post_sampling_probs", "no sampler runs on a prompt: leave it out with 'echo'")
        request = replace(request, response=replace(request.response, echo=True))
    if body.get("n_probs") is None and body.get("logprobs") == 0 and body.get("logprobs") is not False:
        # OpenAI's: each token's own probability, and no alternative
        one = replace(request.sampling, n_probs=1)
        request = replace(request, sampling=one, response=replace(request.response, alternatives=0))
    return request


def completion_request(body: Body, parallel: int = 1) -> GenerationRequest:
    """The completion request in `body`, a JSON object, for up to `parallel` answers to a prompt. Raises
    RequestError."""
    refuse_unsupported(body, COMPLETION_UNSUPPORTED)
    check_ignored(body)
    fields.string(body, "grammar")
    if "prompt" not in body:
        raise RequestError("'prompt' is required")
    limits = _limits(body, parallel)
    limits["response"] = replace(limits["response"], fields=_response_fields(body))
    prompt, *more = read_prompts(body["prompt"])
    return GenerationRequest(
        prompt=prompt,
        more_prompts=tuple(more),
        **limits,
        sampling=read_sampling(body, chat=False),
        constraint=read_completion_constraint(body),
    )


def _slot(body: Body) -> int | None:
    """`id_slot`: -1 is any slot."""
    number = fields.integer(body, ("id_slot",), -1, -1, fields.INT32_MAX)
    return None if number < 0 else number


def _limits(body: Body, parallel: int) -> dict[str, Any]:
    """What every generation request has beside its prompt, sampling and constraint. `parallel`: the most answers to a
    prompt."""
    given = any(body.get(name) is not None for name in MAX_TOKENS_FIELDS)
    limit = fields.integer(body, MAX_TOKENS_FIELDS, UNLIMITED, UNLIMITED, fields.INT32_MAX)
    return {
        "model": fields.string(body, "model"),
        "max_tokens": limit if given else None,
        "stop": None if body.get("stop") is None else read_stop(body["stop"]),
        "cache_prompt": fields.boolean(body, "cache_prompt", True),
        "slot": _slot(body),
        "copies": fields.integer(body, COPIES_FIELDS, 1, 1, parallel),
        "response": ResponseOptions(
            stream=fields.boolean(body, "stream", False),
            include_usage=_include_usage(body),
            return_tokens=fields.boolean(body, "return_tokens", False),
            timings_per_token=fields.boolean(body, "timings_per_token", False),
            verbose=fields.boolean(body, "verbose", False),
            alternatives=0 if _no_alternatives(body) else None,
            ping_interval=_ping_interval(body),
            return_progress=fields.boolean(body, "return_progress", False),
        ),
    }


def _response_fields(body: Body) -> tuple[str, ...]:
    """llama-server's choice of the fields of a `/completion`."""
    given = body.get("response_fields")
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise fields.refuse("response_fields", f"expected an array of strings, but got {fields.shown(given)}")
    return tuple(given)


PING_INTERVAL = 30
"""Seconds, llama-server's default."""


def _ping_interval(body: Body) -> float | None:
    """`sse_ping_interval` in seconds; -1 sends no pings."""
    seconds = fields.integer(body, ("sse_ping_interval",), PING_INTERVAL, -1, fields.INT32_MAX)
    return None if seconds <= 0 else float(seconds)


def _no_alternatives(body: Body) -> bool:
    """OpenAI's `top_logprobs: 0`, and `logprobs: 0` of its older API: each token's own probability, and no other."""
    top, logprobs = body.get("top_logprobs"), body.get("logprobs")
    if logprobs is True:
        return isinstance(top, (int, float)) and not isinstance(top, bool) and int(top) == 0
    return False


def _include_usage(body: Body) -> bool:
    options = fields.mapping(body, "stream_options")
    return fields.boolean(options, "include_usage", False, "stream_options.include_usage")


def refuse_unsupported(body: Body, table: Unsupported, path: str = "") -> None:
    """Raises RequestError for a field of `table` with another than its harmless values. `path` precedes the field's
    name: `messages[0].`."""
    for name, (harmless, why) in table.items():
        value = body.get(name)
        if value is not None and not any(type(value) is type(one) and value == one for one in harmless):
            raise fields.refuse(path + name, f"{why} (got {fields.shown(value)})")


def check_ignored(body: Body) -> None:
    """Raises RequestError for a field of FLAGS or COUNTS with a value of another type."""
    for name in FLAGS:
        fields.boolean(body, name, False)
    for name, least in COUNTS.items():
        fields.integer(body, (name,), least, least, fields.INT32_MAX)


def read_stop(stop: object, path: str = "stop") -> tuple[str, ...]:
    """`stop`: a string or an array of strings, none of them empty. Raises RequestError."""
    if isinstance(stop, str):
        if not stop:
            raise fields.refuse(path, "expected a string that is not empty")
        return (stop,)
    if not isinstance(stop, list):
        raise fields.refuse(path, f"expected a string or an array of strings, but got {fields.shown(stop)}")
    if len(stop) > MOST_STOPS:
        raise fields.refuse(path, f"expected at most {MOST_STOPS} strings, but got {len(stop)}")
    for i, one in enumerate(stop):
        if not isinstance(one, str) or not one:
            what = "an empty string" if one == "" else fields.shown(one)
            raise fields.refuse(f"{path}[{i}]", f"expected a string that is not empty, but got {what}")
    return tuple(stop)
