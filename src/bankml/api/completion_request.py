"""The body of `POST /completion`, llama-server's own: a prompt as it is, without template or roles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api import fields
from bankml.api.chat_request import (
    MAX_TOKENS_FIELDS,
    REFUSED,
    Unplayed,
    check_unused,
    include_usage,
    refuse_unplayed,
    stop_strings,
)
from bankml.api.json_in import read_object
from bankml.engine.completion import UNLIMITED
from bankml.errors import RequestError
from bankml.library.resident import Tokens

PROMPT_FORMS = (
    '"prompt" elements must be a string, a list of tokens, a JSON object containing a prompt string, '
    "or a list of mixed strings & tokens."
)
"""llama-server's sentence for a prompt it cannot read."""

UNPLAYED: Unplayed = {
    **REFUSED,
    "response_format": (
        ({"type": "text"},),
        'it is for /v1/chat/completions; here, "json_schema" is the schema itself',
    ),
    "grammar_lazy": ((False,), "grammars that begin to hold at a trigger are not supported"),
    "grammar_triggers": (([],), "grammars that begin to hold at a trigger are not supported"),
    "preserved_tokens": (([],), "control tokens have no text in an answer"),
    "generation_prompt": (("",), "a grammar begins with the first token that is drawn"),
    "reasoning_budget_start_tag": (("",), "limits of a thought's length are not supported"),
    "id_slot": ((-1, 0), "there is one slot, 0"),
}


@dataclass(frozen=True)
class CompletionRequest:
    """One request, checked. `prompt` are its texts and token ids in order; `model` None means the startup model.

    `body` is for the room that reads its own fields of it: sampling its parameters.
    """

    body: Mapping[str, Any]
    prompt: tuple[str | int, ...]
    model: str | None
    stream: bool
    max_tokens: int
    stop: tuple[str, ...]
    cache_prompt: bool
    return_tokens: bool


def read_completion(data: bytes) -> CompletionRequest:
    """Reads a request's body. Raises RequestError with one sentence: the field, what is allowed and what came."""
    return completion_request(read_object(data))


def completion_request(body: Mapping[str, Any]) -> CompletionRequest:
    """The request in `body`, an object already."""
    refuse_unplayed(body, UNPLAYED)
    check_unused(body)
    include_usage(body)  # which has no effect on this route
    fields.integer(body, ("n_cmpl", "n"), 1, 1, 1)
    fields.string(body, "grammar")
    if "prompt" not in body:
        raise RequestError("'prompt' is required")
    return CompletionRequest(
        body=body,
        prompt=_only_prompt(body["prompt"]),
        model=fields.string(body, "model"),
        stream=fields.boolean(body, "stream", False),
        max_tokens=fields.integer(body, MAX_TOKENS_FIELDS, UNLIMITED, UNLIMITED, fields.INT32_MAX),
        stop=stop_strings(body),
        cache_prompt=fields.boolean(body, "cache_prompt", True),
        return_tokens=fields.boolean(body, "return_tokens", False),
    )


def prompt_tokens(prompt: tuple[str | int, ...], tokens: Tokens) -> list[int]:
    """The parts of a prompt as one list of tokens. Raises RequestError, in llama-server's words, for an unknown id."""
    ids: list[int] = []
    for part in prompt:
        if isinstance(part, str):
            ids += tokens.encode(part)
        elif 0 <= part < tokens.n_vocab:
            ids.append(part)
        else:
            raise RequestError("Prompt contains invalid tokens")
    return ids


def _only_prompt(value: object) -> tuple[str | int, ...]:
    """An array without a number in it is an array of prompts: here of exactly one."""
    if not isinstance(value, list) or any(_is_token(one) for one in value):
        return _parts(value)
    if not value:
        raise RequestError('"prompt" must not be empty')
    if len(value) > 1:
        raise fields.refuse("prompt", f"one prompt a request is answered, but got {len(value)}")
    return _parts(value[0])


def _parts(value: object) -> tuple[str | int, ...]:
    if isinstance(value, dict) and "prompt_string" in value:
        if "multimodal_data" in value:
            raise RequestError("Multimodal data provided, but model does not support multimodal requests.")
        value = value["prompt_string"]
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(one, str) or _is_token(one) for one in value):
        return tuple(value)
    raise RequestError(PROMPT_FORMS)


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
