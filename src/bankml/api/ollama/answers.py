"""`POST /api/chat` and `POST /api/generate`: from a request's bytes to a response with a receipt."""

import time
from dataclasses import replace

from bankml.api.answering import answer
from bankml.api.call import Call
from bankml.api.formats.ollama import MessageField, OllamaFormat, entry_with, message, response
from bankml.api.formats.response import ResponseContext
from bankml.api.generation import ContextRule
from bankml.api.ollama.chat_request import read_chat
from bankml.api.ollama.durations import FOREVER
from bankml.api.ollama.generate_request import read_generate
from bankml.api.ollama.request import OllamaRequest
from bankml.errors import RequestError
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.layer import context_of, with_layer
from bankml.library.reference import Reference
from bankml.library.request import GenerationRequest
from bankml.library.residency import FOR_GOOD, Library


def chat(library: Library, request: Request, reply: Reply, keep_alive: float) -> RequestOutcome:
    """Answers one conversation; without messages the model is loaded, or unloaded where it is not to be kept.

    `keep_alive` is how long a model stays loaded whose request does not say, in seconds (durations.FOREVER: for good).
    """
    return _answer(library, request, read_chat(request.body), message, reply, keep_alive)


def generate(library: Library, request: Request, reply: Reply, keep_alive: float) -> RequestOutcome:
    """Answers one prompt: a conversation of one message, or with `raw` the prompt itself. An empty one as in `chat`."""
    return _answer(library, request, read_generate(request.body), response, reply, keep_alive)


def _answer(
    library: Library, http: Request, asked: OllamaRequest, message_field: MessageField, reply: Reply, keep_alive: float
) -> RequestOutcome:
    seconds = keep_alive if asked.keep_alive is None else asked.keep_alive
    keep = FOR_GOOD if seconds == FOREVER else seconds
    if asked.generation is not None:
        return answer(library, _call_of(library, http, asked, asked.generation, message_field, keep), reply)
    reference, form = library.resolve(asked.model), OllamaFormat(asked.model, message_field, http.arrived)
    if asked.keep_alive == 0:
        return _unload(library, reference, form, reply)
    return _load(library, reference, form, keep, reply)


def chat_call(library: Library, http: Request) -> Call:
    """`POST /api/chat` that generates. Raises RequestError, also for one without messages."""
    return _generating_call(library, http, read_chat(http.body), message)


def generate_call(library: Library, http: Request) -> Call:
    """The same of `POST /api/generate`."""
    return _generating_call(library, http, read_generate(http.body), response)


def _generating_call(library: Library, http: Request, asked: OllamaRequest, message_field: MessageField) -> Call:
    if asked.generation is None:
        raise RequestError("the request has no prompt: it loads or unloads a model")
    return _call_of(library, http, asked, asked.generation, message_field, FOR_GOOD)


def _call_of(
    library: Library,
    http: Request,
    asked: OllamaRequest,
    generation: GenerationRequest,
    message_field: MessageField,
    keep: float | None,
) -> Call:
    reference = library.resolve(asked.model)
    longest = library.n_ctx
    n_ctx = context_of(reference.name, reference.layer, longest) if asked.num_ctx is None else asked.num_ctx
    served = longest if n_ctx > longest else None  # fewer than the request asked for: the response says so

    def format_of(context: ResponseContext) -> OllamaFormat:
        left_out = context.generation.left_out
        return OllamaFormat(asked.model, message_field, http.arrived, context.loading, left_out, served)

    return Call(
        body=http.body,
        arrived=http.arrived,
        request=with_layer(reference.layer, generation),
        reference=reference,
        context=ContextRule(min(n_ctx, longest), asked.truncate),
        format_of=format_of,
        keep=keep,
        logprob_shape=entry_with(asked.logprobs or 0),
        route=http.path,
        issuer=library.issuer,
    )


def _load(
    library: Library, reference: Reference, form: OllamaFormat, keep: float | None, reply: Reply
) -> RequestOutcome:
    """Loads the model; answers with one object, streamed or not, as Ollama does."""
    with library.turn(reply.cancelled):
        began = time.monotonic()
        library.ready(reference).check_unchanged()
        library.keep(keep)
        loading = time.monotonic() - began
    reply.whole(200, json_bytes(replace(form, loading=loading).without_answer("load")))
    return RequestOutcome(200, note="load")


def _unload(library: Library, reference: Reference, form: OllamaFormat, reply: Reply) -> RequestOutcome:
    """Unloads the model if it is loaded."""
    with library.turn(reply.cancelled):
        if library.resident_as(reference) is not None:
            library.drop()
    reply.whole(200, json_bytes(form.without_answer("unload")))
    return RequestOutcome(200, note="unload")
