"""A derived model's layer, stacked on another and applied to a request, both as Ollama does it.

Stacking (`FROM` a derived model): a SYSTEM takes the place of the one below, and so do MESSAGEs and stop strings, all
of them together; a PARAMETER takes the place of the one of its name; LICENSEs add up. What is not given, or is an
empty SYSTEM, leaves what is below.

Applying: a request's own fields stand before the layer's PARAMETERs, and its stop strings before the layer's. The
layer's SYSTEM comes first unless the request begins with a system message of its own, and the MESSAGEs come between the
system message and the rest. (Ollama puts MESSAGEs before a request's own system message too and leaves it to the
template to move it to the front; our templates render in order.) It is the same on /api/chat, on /api/generate, whose
prompt is a conversation of one user message, and on /v1. A raw prompt takes the PARAMETERs alone.
"""

from collections.abc import Mapping
from typing import Any

from bankml.errors import RequestError
from bankml.library.modelfile import Modelfile
from bankml.library.parameters import PARAMETERS, UNLIMITED
from bankml.library.reference import ModelLayer

MAX_TOKENS_FIELDS = ("n_predict", "max_completion_tokens", "max_tokens")
"""A request that gives any of these says itself how many tokens it wants."""


def stacked(below: ModelLayer, modelfile: Modelfile) -> ModelLayer:
    """What `modelfile` asks for over `below`, a layer of the same base."""
    return ModelLayer(
        system=modelfile.system or below.system,
        parameters={**below.parameters, **modelfile.parameters},
        stop=modelfile.stop or below.stop,
        messages=modelfile.messages or below.messages,
        license=below.license + modelfile.license,
        template_sha256=below.template_sha256,
        base_sha256=below.base_sha256,
        requires=modelfile.requires or below.requires,
    )


def with_layer(layer: ModelLayer | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a /v1 chat request with the layer under it: messages, sampling fields and stop strings.

    `num_ctx` is not a field of such a request: see `context_of`. A body whose messages are none is left for its reader
    to refuse.
    """
    if layer is None:
        return dict(body)
    applied = with_parameters(layer, body)
    messages = applied.get("messages")
    if not isinstance(messages, list) or not messages:
        return applied
    own = next((i for i, message in enumerate(messages) if not _is_system(message)), len(messages))
    first = messages[:own] if own or not layer.system else [{"role": "system", "content": layer.system}]
    applied["messages"] = [*first, *(dict(message) for message in layer.messages), *messages[own:]]
    return applied


def with_parameters(layer: ModelLayer | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """As `with_layer`, but for the messages: what a raw prompt takes."""
    applied = dict(body)
    if layer is None:
        return applied
    for name, value in layer.parameters.items():
        field = PARAMETERS[name].field
        if field is None or applied.get(field) is not None:
            continue
        if field == "max_tokens":
            if all(applied.get(one) is None for one in MAX_TOKENS_FIELDS):
                applied[field] = max(value, UNLIMITED)
        else:
            applied[field] = value
    if layer.stop and applied.get("stop") is None:
        applied["stop"] = list(layer.stop)
    return applied


def context_of(name: str, layer: ModelLayer | None, n_ctx: int) -> int:
    """The tokens of context the model `name` is to have: its layer's `num_ctx`, else all of `n_ctx`.

    Raises RequestError when the layer asks for more than the server has; asked before anything is loaded.
    """
    asked = layer.num_ctx if layer is not None else None
    if asked is None:
        return n_ctx
    if asked > n_ctx:
        raise RequestError(f"{name} asks for num_ctx {asked}, and this server's context is {n_ctx} (--ctx)")
    return asked


def _is_system(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "system"
