"""`POST /api/chat` and `POST /api/generate`: from a request's bytes to an answer with a receipt."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bankml.api.answering import Generation, PreparedGeneration, Writer, answer
from bankml.api.chat import body_generation
from bankml.api.chat_request import chat_request
from bankml.api.ending import stop_word_tokens
from bankml.api.fitting import Fitted, fitted, limited
from bankml.api.logprobs import Logprobs
from bankml.api.ollama.chat_request import read_chat
from bankml.api.ollama.durations import FOREVER
from bankml.api.ollama.generate_request import Generate, read_generate
from bankml.api.ollama.request import Asked
from bankml.api.ollama.writers import Carry, Head, StreamWriter, WholeWriter, entry_with, message, response
from bankml.engine.completion import Job
from bankml.errors import RequestError
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.layer import context_of, with_layer, with_parameters
from bankml.library.reference import Reference
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.receipt.receipt import Tally


@dataclass(frozen=True)
class Call:
    """One request on its way: what it asks for, of which model, and how its answer carries text.

    `n_ctx` are the tokens of its context; `keep` is how long the model stays afterwards, in seconds, as `Library.keep`
    takes it.
    """

    request: Request
    asked: Asked
    reference: Reference
    carry: Carry
    n_ctx: int
    keep: float | None

    def head(self, loading: float, left_out: int = 0) -> Head:
        return Head(self.asked.model, self.carry, self.request.arrived, loading, left_out)


Prompted = Callable[[Resident], Fitted]
"""What a request asks a model for. Raises RequestError for everything that can be wrong with it."""


def chat(library: Library, request: Request, reply: Reply, keep_alive: float) -> RequestOutcome:
    """Answers one conversation; without messages the model is loaded, or unloaded where it is not to be kept.

    `keep_alive` is how long a model stays whose request does not say, in seconds (durations.FOREVER: for good).
    """
    asked = read_chat(request.body)
    call = _call(library, request, asked.asked, message, keep_alive)
    if not asked.messages:
        return _load(library, call, reply)

    def prompted(resident: Resident) -> Fitted:
        return _conversation(call, asked.messages, resident)

    return _answer(library, call, prompted, reply)


def generate(library: Library, request: Request, reply: Reply, keep_alive: float) -> RequestOutcome:
    """Answers one prompt: a conversation of one message, or with `raw` the prompt itself. An empty one as in `chat`."""
    asked = read_generate(request.body)
    call = _call(library, request, asked.asked, response, keep_alive)
    if not asked.prompt:
        return _load(library, call, reply)

    def prompted(resident: Resident) -> Fitted:
        if asked.raw:
            return Fitted(_raw(call, asked, resident))
        system = [{"role": "system", "content": asked.system}] if asked.system else []
        return _conversation(call, (*system, {"role": "user", "content": asked.prompt}), resident)

    return _answer(library, call, prompted, reply)


def _call(library: Library, request: Request, asked: Asked, carry: Carry, keep_alive: float) -> Call:
    reference = library.resolve(asked.model)
    seconds = keep_alive if asked.keep_alive is None else asked.keep_alive
    n_ctx = _n_ctx(asked.options.num_ctx, reference, library.n_ctx)
    return Call(request, asked, reference, carry, n_ctx, FOR_GOOD if seconds == FOREVER else seconds)


def _n_ctx(asked: int | None, reference: Reference, longest: int) -> int:
    """What the request says, else its model's layer, else all there is."""
    if asked is None:
        return context_of(reference.name, reference.layer, longest)
    if asked > longest:
        raise RequestError(f"Field 'options.num_ctx': this server's context is {longest} (--ctx), but got {asked}")
    return asked


def _conversation(call: Call, messages: tuple[Mapping[str, Any], ...], resident: Resident) -> Fitted:
    """The messages as `/v1/chat/completions` would answer them, over the model's layer, made to fit."""
    body = with_layer(call.reference.layer, {**call.asked.fields, "messages": list(messages)})
    return fitted(body, resident, call.n_ctx, partial(body_generation, resident=resident), call.asked.truncate)


def _raw(call: Call, asked: Generate, resident: Resident) -> Generation:
    """The prompt as `/completion` would go on from it."""
    body = with_parameters(call.reference.layer, call.asked.fields)
    wanted = chat_request(body)
    job = Job(resident.tokens.encode(asked.prompt), wanted.max_tokens)
    pieces = resident.text_pieces(wanted.stop)
    return limited(Generation(job, resident.sampler(body), pieces), min(call.n_ctx, resident.n_ctx))


def _answer(library: Library, call: Call, prompted: Prompted, reply: Reply) -> RequestOutcome:
    def prepare(resident: Resident, loading: float) -> PreparedGeneration:
        found = prompted(resident)
        tally = Tally(resident.provenance, call.request.body, call.request.arrived)
        logprobs = Logprobs(resident.tokens.piece, tally, entry_with(call.asked.logprobs or 0))
        head = call.head(loading, found.left_out)
        return PreparedGeneration(
            found.generation, tally, _writer(call, head, found.generation, resident, logprobs, reply)
        )

    return answer(library, call.reference, prepare, reply, call.keep)


def _writer(
    call: Call, head: Head, generation: Generation, resident: Resident, logprobs: Logprobs, reply: Reply
) -> Writer:
    if call.asked.stream:
        return StreamWriter(head, reply, logprobs)
    pieces = generation.pieces
    return WholeWriter(head, reply, logprobs, lambda last: stop_word_tokens(last, pieces, resident.tokens))


def _load(library: Library, call: Call, reply: Reply) -> RequestOutcome:
    """Has the model made resident, or lets go of it; answers with one object, streamed or not, as Ollama does."""
    with library.turn(reply.cancelled):
        began = time.monotonic()
        if call.asked.keep_alive == 0:
            if library.resident_as(call.reference) is not None:
                library.drop()
            reason = "unload"
        else:
            library.ready(call.reference).check_unchanged()
            library.keep(call.keep)
            reason = "load"
        loading = time.monotonic() - began
    reply.whole(200, json_bytes(call.head(loading).done(reason)))
    return RequestOutcome(200, note=reason)
