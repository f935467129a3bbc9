"""`POST /v1/chat/completions`: from a request's bytes to an answer with a receipt."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bankml.api.answering import Generation, PreparedGeneration, Writer, answer
from bankml.api.chat_request import ChatRequest, chat_request, read_chat
from bankml.api.content_steps import content_steps
from bankml.api.ending import stop_word_tokens
from bankml.api.fitting import fitted
from bankml.api.logprobs import Logprobs
from bankml.api.openai import Head, StreamWriter, WholeWriter
from bankml.engine.completion import Job
from bankml.grammar.constraint import Constraint
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.library.layer import context_of, with_layer
from bankml.library.reference import ModelLayer
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.receipt import Tally

WriterOf = Callable[[ChatRequest, Head, Resident, Reply, Logprobs, Generation], Writer]
"""Makes what writes the answer to a chat request."""


def chat_completions(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """Answers one chat request. What can be wrong with it is found before it stands in line for the resident model."""
    return answer_chat(library, read_chat(request.body), request, reply, wire_writer)


def answer_chat(
    library: Library, chat: ChatRequest, request: Request, reply: Reply, writer_of: WriterOf
) -> RequestOutcome:
    """Answers `chat`, which is what `request` asks; its receipt is about the request's bytes."""
    reference = library.resolve(chat.model)
    n_ctx = context_of(reference.name, reference.layer, library.n_ctx)

    def prepare(resident: Resident, loading: float) -> PreparedGeneration:
        generation = layered_generation(chat, reference.layer, n_ctx, resident)
        tally = Tally(resident.provenance, request.body, request.arrived)
        logprobs = Logprobs(resident.tokens.piece, tally)
        return PreparedGeneration(
            generation, tally, writer_of(chat, Head(reference.name), resident, reply, logprobs, generation)
        )

    return answer(library, reference, prepare, reply)


def layered_generation(chat: ChatRequest, layer: ModelLayer | None, n_ctx: int, resident: Resident) -> Generation:
    """What `chat` asks for over a derived model's layer. A layer that says how much context there is makes a long
    conversation fit its `n_ctx` tokens; otherwise such a one is refused, as in llama-server."""
    if layer is None:
        return chat_generation(chat, resident)
    body = with_layer(layer, chat.body)
    if layer.num_ctx is None:
        return body_generation(body, resident)
    return fitted(body, resident, n_ctx, partial(body_generation, resident=resident)).generation


def body_generation(body: Mapping[str, Any], resident: Resident) -> Generation:
    """`chat_generation` of a request that is an object already."""
    return chat_generation(chat_request(body), resident)


def chat_generation(chat: ChatRequest, resident: Resident) -> Generation:
    """What `chat` asks the resident model for. Raises RequestError for messages, samplers, schemas that cannot be."""
    prompt = resident.prompt(chat.body)
    job = Job(resident.tokens.encode(prompt.text), chat.max_tokens, chat.cache_prompt)
    pieces = resident.text_pieces(chat.stop, chat=True, begun=bool(prompt.prefill))
    sampler, wanted = resident.sampler(chat.body), resident.constraint(chat.body)
    if wanted is None:
        return Generation(job, sampler, pieces, prompt.prefill)
    generation = Generation(job, resident.held(sampler, wanted), pieces, prompt.prefill)
    return _held(generation, wanted, chat.stream)


def _held(generation: Generation, wanted: Constraint, streamed: bool) -> Generation:
    content = wanted.content()
    if content is None:
        return generation
    told = partial(content_steps, content=content, streamed=streamed)
    return replace(generation, prefill=content.push(""), told=told)


def wire_writer(
    chat: ChatRequest, head: Head, resident: Resident, reply: Reply, logprobs: Logprobs, generation: Generation
) -> Writer:
    """The answer as OpenAI's clients read it, streamed or whole."""
    if chat.stream:
        return StreamWriter(head, reply, logprobs, chat.include_usage)
    pieces = generation.pieces
    return WholeWriter(head, reply, logprobs, lambda last: stop_word_tokens(last, pieces, resident.tokens))
