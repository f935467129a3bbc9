"""The body of `POST /v1/chat/completions`: what is asked, checked before any token is computed.

Fields that nobody knows are ignored, as in llama-server. Fields that are known and would change the answer, but are not
done here, are refused by name: see REFUSED. The messages are the text room's to read, sampling parameters sampling's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api import fields
from bankml.api.json_in import read_json
from bankml.engine.completion import UNLIMITED
from bankml.errors import RequestError
from bankml.grammar.constraint import THINKING_OFF

MAX_TOKENS_FIELDS = ("n_predict", "max_completion_tokens", "max_tokens")
"""The same limit by three names; the first that is there counts, as in llama-server."""

Unplayed = Mapping[str, tuple[tuple[object, ...], str]]

REFUSED: Unplayed = {
    "functions": (([],), "functions are not supported"),
    "function_call": (("none", "auto"), "functions are not supported"),
    "lora": (([],), "LoRA adapters are not supported"),
    "reasoning_format": (("none", "auto", "deepseek", "deepseek-legacy"), THINKING_OFF),
    "n_indent": ((0,), "indentation limits are not supported"),
    "t_max_predict_ms": ((-1, 0), "time limits are not supported"),
    "n_cache_reuse": ((0,), "reuse of shifted chunks of the cache is not supported"),
    "response_fields": (([],), "choosing the fields of the answer is not supported"),
    "audio": ((), "audio is not supported"),
    "modalities": ((["text"],), "only text is supported"),
}
"""Known fields that would change the answer: the values that leave it as it is, and why any other is refused."""

FLAGS = (
    "verbose",
    "timings_per_token",
    "return_progress",
    "return_tokens",
    "parse_tool_calls",
    "echo",
    "reasoning_control",
)
COUNTS = {"sse_ping_interval": -1, "n_keep": -1, "n_discard": 0, "reasoning_budget_tokens": -1}
"""Known fields that no answer depends on here, true or false and whole numbers with the least of each: a value that is
none is a mistake all the same, and llama-server's 400."""


@dataclass(frozen=True)
class ChatRequest:
    """One chat request, checked. `model` None means the startup model.

    `body` is for the rooms that read their own fields of it: text its messages, sampling its parameters.
    """

    body: Mapping[str, Any]
    model: str | None
    stream: bool
    include_usage: bool
    max_tokens: int
    stop: tuple[str, ...]
    cache_prompt: bool


def read_chat(body: bytes) -> ChatRequest:
    """Reads a request's body. Raises RequestError with one sentence: the field, what is allowed and what came."""
    return chat_request(read_body(body))


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a chat request's body. Raises RequestError with one sentence."""
    value = read_json(body)
    if isinstance(value, list):
        raise RequestError("'messages' is required")
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object with 'messages'")
    return value


def chat_request(body: Mapping[str, Any]) -> ChatRequest:
    """The request in `body`, an object already."""
    _response_format(body)
    refuse_unplayed(body, REFUSED)
    check_unused(body)
    fields.integer(body, ("n_cmpl", "n"), 1, 1, 1)
    fields.string(body, "grammar")
    return ChatRequest(
        body=body,
        model=fields.string(body, "model"),
        stream=fields.boolean(body, "stream", False),
        include_usage=include_usage(body),
        max_tokens=fields.integer(body, MAX_TOKENS_FIELDS, UNLIMITED, UNLIMITED, fields.INT32_MAX),
        stop=stop_strings(body),
        cache_prompt=fields.boolean(body, "cache_prompt", True),
    )


def include_usage(body: Mapping[str, Any]) -> bool:
    """`stream_options.include_usage`: whether a stream's counts are to come in a chunk of their own."""
    options = fields.mapping(body, "stream_options")
    return fields.boolean(options, "include_usage", False, "stream_options.include_usage")


def refuse_unplayed(body: Mapping[str, Any], table: Unplayed, path: str = "") -> None:
    """Raises RequestError for a field of `table` that has another than its harmless values. `path` is what goes before
    its name: `messages[0].`."""
    for name, (harmless, why) in table.items():
        value = body.get(name)
        if value is not None and not any(type(value) is type(one) and value == one for one in harmless):
            raise fields.refuse(path + name, f"{why} (got {fields.shown(value)})")


def check_unused(body: Mapping[str, Any]) -> None:
    """Raises RequestError for a field of FLAGS or COUNTS that does not hold what it is for."""
    for name in FLAGS:
        fields.boolean(body, name, False)
    for name, least in COUNTS.items():
        fields.integer(body, (name,), least, least, fields.INT32_MAX)


MOST_STOPS = 1024
"""Stop strings of one request: each is looked for at every token, and the slot waits meanwhile."""


def stop_strings(body: Mapping[str, Any]) -> tuple[str, ...]:
    """`stop`: a string or an array of strings, none of them empty.

    A number there is taken as no stop string, as llama-server takes it; anything else is refused.
    """
    stop = body.get("stop")
    if stop is None or (isinstance(stop, (int, float)) and not isinstance(stop, bool)):
        return ()
    if isinstance(stop, str):
        if not stop:
            raise fields.refuse("stop", "expected a string that is not empty")
        return (stop,)
    if not isinstance(stop, list):
        raise fields.refuse("stop", f"expected a string or an array of strings, but got {fields.shown(stop)}")
    if len(stop) > MOST_STOPS:
        raise fields.refuse("stop", f"expected at most {MOST_STOPS} strings, but got {len(stop)}")
    for i, one in enumerate(stop):
        if not isinstance(one, str) or not one:
            what = "an empty string" if one == "" else fields.shown(one)
            raise fields.refuse(f"stop[{i}]", f"expected a string that is not empty, but got {what}")
    return tuple(stop)


def _response_format(body: Mapping[str, Any]) -> None:
    wanted = fields.mapping(body, "response_format").get("type")
    if wanted is None or wanted in ("", "text", "json_object", "json_schema"):
        return
    got = fields.shown(wanted)[1:-1] if isinstance(wanted, str) else fields.shown(wanted)
    raise RequestError(f'response_format type must be one of "text" or "json_object", but got: {got}')
