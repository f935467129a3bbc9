"""A derived model's layer, stacked on another and applied to a request, both as Ollama does it.

Stacking (`FROM` a derived model): a SYSTEM replaces the one below, and so do MESSAGEs and stop strings, as complete
lists; a PARAMETER replaces the one of its name; LICENSEs accumulate. What is missing, or an empty SYSTEM, leaves the
value below.

Applying: a request's own fields take precedence over the layer's PARAMETERs, and its stop strings over the layer's. The
layer's SYSTEM comes first unless the request begins with a system message of its own, and the MESSAGEs come between the
system message and the rest. (Ollama puts MESSAGEs before a request's own system message too and leaves it to the
template to move it to the front; our templates render in order.) The same holds on /api/chat, on /api/generate, whose
prompt is a conversation of one user message, and on /v1. A raw prompt gets the PARAMETERs only.
"""

from dataclasses import replace

from bankml.errors import RequestError
from bankml.library.modelfile import Modelfile
from bankml.library.parameters import as_sampling
from bankml.library.reference import ModelLayer
from bankml.library.request import UNLIMITED, GenerationRequest
from bankml.text.messages import Conversation, continuation


def stacked(below: ModelLayer, modelfile: Modelfile) -> ModelLayer:
    """`modelfile` stacked on `below`, a layer of the same base."""
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


def with_layer(layer: ModelLayer | None, request: GenerationRequest) -> GenerationRequest:
    """`request` with the layer applied: parameters, stop strings, and for a conversation the messages.

    `num_ctx` is not a field of a request: see `context_of`. Raises RequestError if the layer's messages and the
    request's do not form a conversation.
    """
    if layer is None:
        return request
    limit = layer.parameters.get("num_predict")
    max_tokens = None if limit is None else max(int(limit), UNLIMITED)
    prompt = request.prompt
    return replace(
        request,
        prompt=_with_messages(layer, prompt) if isinstance(prompt, Conversation) else prompt,
        max_tokens=max_tokens if request.max_tokens is None else request.max_tokens,
        stop=(layer.stop or None) if request.stop is None else request.stop,
        sampling=request.sampling.or_else(as_sampling(layer.parameters)),
    )


def _with_messages(layer: ModelLayer, conversation: Conversation) -> Conversation:
    messages = conversation.messages
    own = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    first = messages[:own] if own or not layer.system else [{"role": "system", "content": layer.system}]
    stacked = [*first, *(dict(message) for message in layer.messages), *messages[own:]]
    if conversation.continues and not conversation.add_generation_prompt:
        continuation(stacked)  # the layer's last message may be an assistant's too
    return replace(conversation, messages=stacked)


def context_of(name: str, layer: ModelLayer | None, n_ctx: int) -> int:
    """The context of the model `name` in tokens: its layer's `num_ctx`, else all of `n_ctx`.

    Raises RequestError if the layer requires more than the server has; called before anything is loaded.
    """
    required = layer.num_ctx if layer is not None else None
    if required is None:
        return n_ctx
    if required > n_ctx:
        raise RequestError(f"{name} requires num_ctx {required}, but this server's context is {n_ctx} (--ctx)")
    return required
