"""What the bodies of `/api/chat` and `/api/generate` have in common, read and checked before any token is computed.

As in Ollama, fields that nobody knows are ignored, and the empty value of a field (`""`, `[]`, `false`, `0`) is the
same as leaving it out. Fields that are known and would change the answer, but are not done here, are refused by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api import fields
from bankml.api.chat_request import Unplayed
from bankml.api.ollama.durations import keep_alive_seconds
from bankml.api.ollama.options import NAMES, Options, read_options
from bankml.errors import RequestError
from bankml.grammar.constraint import THINKING_OFF
from bankml.grammar.json_schema import json_schema_to_grammar
from bankml.grammar.matcher import Grammar

UNPLAYED: Unplayed = {
    "images": (([],), "images are not read: only text is supported"),
    "think": ((False,), THINKING_OFF),
    "shift": ((False,), "a full context is not shifted: an answer ends with it"),
    "_debug_render_only": ((False,), "POST /apply-template shows the prompt"),
}
"""Fields of both that would change the answer: the values that leave it as it is, and why any other is refused."""

MOST_TOP_LOGPROBS = 20


@dataclass(frozen=True)
class Asked:
    """What both requests say beside their prompt.

    `keep_alive` is in seconds (durations.FOREVER: for good), None where it was not said. `held_to` are the fields of a
    `/v1/chat/completions` body that hold the answer to JSON. `logprobs` is how many alternatives are reported with each
    token, None where nothing is. `truncate`: whether a conversation that is too long loses its oldest messages.
    """

    model: str
    stream: bool
    keep_alive: float | None
    options: Options
    held_to: Mapping[str, Any]
    logprobs: int | None
    truncate: bool

    @property
    def fields(self) -> dict[str, Any]:
        """All of it that is a field of a `/v1/chat/completions` body."""
        probs = {} if self.logprobs is None else {"logprobs": True, "top_logprobs": max(1, self.logprobs)}
        return {**self.options.fields, **self.held_to, **probs, "stream": self.stream}


def read_asked(body: Mapping[str, Any]) -> Asked:
    """The common fields of a body. Raises RequestError with one sentence: the field, what is allowed and what came."""
    for name in NAMES:
        if name in body:
            raise fields.refuse(name, "this is an option: it belongs inside 'options'")
    return Asked(
        model=model_name(body),
        stream=fields.boolean(body, "stream", True),
        keep_alive=None if body.get("keep_alive") is None else keep_alive_seconds(body["keep_alive"]),
        options=read_options(fields.mapping(body, "options")),
        held_to=_held_to(body.get("format")),
        logprobs=_logprobs(body),
        truncate=fields.boolean(body, "truncate", True),
    )


def model_name(body: Mapping[str, Any], *names: str) -> str:
    """The model that a body names by `model`, or by the first of `names` that is there. Raises RequestError."""
    for name in ("model", *names):
        if given := fields.string(body, name):
            return given
    raise RequestError("model is required")


def _held_to(wanted: object) -> Mapping[str, Any]:
    """`format`: nothing, "json" for any JSON object, or a schema, of which {} says no more than that."""
    if wanted in (None, ""):
        return {}
    if wanted in ("json", {}):
        return {"response_format": {"type": "json_object"}}
    if isinstance(wanted, dict):
        return {"json_schema": wanted}
    raise fields.refuse("format", f'expected "json" or a JSON schema, but got {fields.shown(wanted)}')


def check_format(asked: Asked) -> None:
    """Raises RequestError for a schema of `format` that no answer can be held to. Every answer is made with a check of
    its own; this is for requests that want none, before a model is loaded for them."""
    schema = asked.held_to.get("json_schema")
    if schema is None:
        return
    try:
        Grammar.parse(json_schema_to_grammar(schema))
    except RequestError as error:
        raise fields.refuse("format", error.message) from None


def _logprobs(body: Mapping[str, Any]) -> int | None:
    wanted = fields.boolean(body, "logprobs", False)
    count = fields.integer(body, ("top_logprobs",), 0, 0, MOST_TOP_LOGPROBS)
    if count and not wanted:
        raise RequestError("top_logprobs requires logprobs to be set to true")
    return count if wanted else None
