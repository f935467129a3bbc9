"""`POST /v1/chat/completions`: from a request's bytes to an answer with a receipt."""

from dataclasses import replace
from functools import partial

from bankml.api.answering import Generation, Writer, respond
from bankml.api.chat_request import ChatRequest, read_chat
from bankml.api.content_steps import content_steps
from bankml.api.ending import stop_word_tokens
from bankml.api.exchange import LogLine, Reply, Request
from bankml.api.logprobs import Logprobs
from bankml.api.openai import Head, StreamWriter, WholeWriter
from bankml.engine.completion import Job
from bankml.engine.parts import TextPieces
from bankml.grammar.constraint import Constraint
from bankml.library.resident import Library, Resident
from bankml.receipt.receipt import Tally


def chat_completions(library: Library, request: Request, reply: Reply) -> LogLine:
    """Answers one chat request. Everything that can be wrong with it is found before it stands in line."""
    chat = read_chat(request.body)
    resident = library.resolve(chat.model)
    prompt = resident.prompt(chat.body)
    job = Job(resident.tokens.encode(prompt.text), chat.max_tokens, chat.cache_prompt)
    pieces = resident.text_pieces(chat.stop)
    sampler, wanted = resident.sampler(chat.body), resident.constraint(chat.body)
    if wanted is None:
        generation = Generation(job, sampler, pieces, prompt.prefill)
    else:
        generation = _held(Generation(job, resident.held(sampler, wanted), pieces, prompt.prefill), wanted, chat.stream)
    tally = Tally(resident.provenance, request.body, request.arrived)
    writer = _writer(chat, resident, reply, Logprobs(resident.tokens.piece, tally), pieces)
    return respond(generation, resident, tally, writer, reply)


def _held(generation: Generation, wanted: Constraint, streamed: bool) -> Generation:
    content = wanted.content()
    if content is None:
        return generation
    told = partial(content_steps, content=content, streamed=streamed)
    return replace(generation, prefill=content.push(""), told=told)


def _writer(chat: ChatRequest, resident: Resident, reply: Reply, logprobs: Logprobs, pieces: TextPieces) -> Writer:
    head = Head(resident.name)
    if chat.stream:
        return StreamWriter(head, reply, logprobs, chat.include_usage)
    return WholeWriter(head, reply, logprobs, lambda last: stop_word_tokens(last, pieces, resident.tokens))
