"""What the bodies of `/api/chat` and `/api/generate` have in common, read and checked before any token is computed.

As in Ollama, unknown fields are ignored, and the empty value of a field (`""`, `[]`, `false`, `0`) is the same as
leaving it out. Known fields that would change the answer, but are not supported, are refused by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bankml.api.ollama.durations import keep_alive_seconds
from bankml.api.ollama.options import NAMES, read_options
from bankml.api.reading import fields
from bankml.api.reading.generation import Unsupported
from bankml.errors import RequestError
from bankml.grammar.constraint import ANY_OBJECT, ConstraintSpec
from bankml.grammar.json_schema import json_schema_to_grammar
from bankml.grammar.matcher import Grammar
from bankml.library.request import GenerationRequest, InfillPrompt, RawPrompt, ResponseOptions
from bankml.text.messages import Conversation

TOOLS_UNSUPPORTED = "tools are not supported"

UNSUPPORTED: Unsupported = {
    "images": (([],), "images are not read: only text is supported"),
    "shift": ((False,), "a full context is not shifted: an answer ends with it"),
    "_debug_render_only": ((False,), "POST /apply-template shows the prompt"),
}
"""Fields of both that would change the answer: the values that leave it as it is, and why any other is refused."""

MOST_TOP_LOGPROBS = 20


@dataclass(frozen=True)
class OllamaRequest:
    """One request. `generation` None: it has no prompt, and only loads or unloads the model.

    `keep_alive` is in seconds (durations.FOREVER: for good), None where it was not sent. `num_ctx` is the context in
    tokens, None for the model's. `logprobs` is how many alternatives are reported with each token, None for no
    logprobs. `truncate`: a conversation that is too long loses its oldest messages.
    """

    model: str
    generation: GenerationRequest | None
    keep_alive: float | None
    num_ctx: int | None
    logprobs: int | None
    truncate: bool


def read_common(
    body: Mapping[str, Any], prompt: Callable[[], Conversation | RawPrompt | InfillPrompt] | None
) -> OllamaRequest:
    """The request in `body`; `prompt` makes its prompt, None for a request without one. Raises RequestError with one
    sentence: the field, what is accepted and what was received."""
    for name in NAMES:
        if name in body:
            raise fields.refuse(name, "this is an option: it belongs inside 'options'")
    model = model_name(body)
    stream = fields.boolean(body, "stream", True)
    keep_alive = None if body.get("keep_alive") is None else keep_alive_seconds(body["keep_alive"])
    options = read_options(fields.mapping(body, "options"))
    constraint = _constraint(body.get("format"))
    logprobs = _logprobs(body)
    truncate = fields.boolean(body, "truncate", True)
    if prompt is None:
        _check_schema(constraint)
        return OllamaRequest(model, None, keep_alive, options.num_ctx, logprobs, truncate)
    n_probs = None if logprobs is None else max(1, logprobs)
    generation = GenerationRequest(
        model=model,
        prompt=prompt(),
        max_tokens=options.max_tokens,
        stop=options.stop,
        sampling=replace(options.sampling, n_probs=n_probs),
        constraint=constraint,
        response=ResponseOptions(stream=stream, whole_calls=True),
    )
    return OllamaRequest(model, generation, keep_alive, options.num_ctx, logprobs, truncate)


THINK_LEVELS = ("low", "medium", "high")


def read_think(body: Mapping[str, Any]) -> tuple[bool | None, dict[str, Any]]:
    """`think`: whether the model reasons, None where it is not sent, and what a template sees of a level. Raises
    RequestError."""
    think = body.get("think")
    if isinstance(think, str) and think in THINK_LEVELS:
        return True, {"reasoning_effort": think}
    if think is None or think == "":
        return None, {}
    if isinstance(think, bool):
        return think, {}
    raise fields.refuse("think", f'expected true, false, "low", "medium" or "high", but got {fields.shown(think)}')


def model_name(body: Mapping[str, Any], *names: str) -> str:
    """The model that a body names by `model`, or by the first of `names` that is present. Raises RequestError."""
    for name in ("model", *names):
        if given := fields.string(body, name):
            return given
    raise RequestError("model is required")


def _constraint(wanted: object) -> ConstraintSpec:
    """`format`: nothing, "json" for any JSON object, or a schema, of which {} means the same."""
    if wanted in (None, ""):
        return ConstraintSpec()
    if wanted in ("json", {}):
        return ConstraintSpec(ANY_OBJECT)
    if isinstance(wanted, dict):
        return ConstraintSpec(wanted)
    raise fields.refuse("format", f'expected "json" or a JSON schema, but got {fields.shown(wanted)}')


def _check_schema(constraint: ConstraintSpec) -> None:
    """Raises RequestError for a schema that no answer can be constrained to. Generating checks it again, behind the
    model's template; this is for requests that generate nothing, before a model is loaded for them."""
    if constraint.schema is None:
        return
    try:
        Grammar.parse(json_schema_to_grammar(constraint.schema))
    except RequestError as error:
        raise fields.refuse("format", error.message) from None


def _logprobs(body: Mapping[str, Any]) -> int | None:
    wanted = fields.boolean(body, "logprobs", False)
    count = fields.integer(body, ("top_logprobs",), 0, 0, MOST_TOP_LOGPROBS)
    if count and not wanted:
        raise RequestError("top_logprobs requires logprobs to be set to true")
    return count if wanted else None
