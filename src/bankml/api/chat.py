"""`POST /v1/chat/completions`: from a request's bytes to an answer with a receipt."""

from bankml.api.chat_request import ChatRequest, read_chat
from bankml.api.content_steps import content_steps
from bankml.api.exchange import LogLine, Reply, Request
from bankml.api.openai import Head, StreamWriter, WholeWriter, Writer
from bankml.engine.completion import Job, Step, complete, fits
from bankml.engine.queue import Cancelled
from bankml.library.resident import Library, Resident
from bankml.receipt.receipt import Tally

CLIENT_LEFT = 499
"""The status a log line gives a request whose client hung up, as nginx does; it is never sent."""


def chat_completions(library: Library, request: Request, reply: Reply) -> LogLine:
    """Answers one chat request. Everything that can be wrong with it is found before it stands in line."""
    chat = read_chat(request.body)
    resident = library.resolve(chat.model)
    prompt = resident.prompt(chat.body)
    tokens = resident.tokens.encode(prompt.text)
    sampler = resident.sampler(chat.body)
    wanted = resident.constraint(chat.body)
    content = wanted and wanted.content()
    if wanted:
        sampler = resident.held(sampler, wanted)
    fits(len(tokens), resident.n_ctx)
    tally = Tally(resident.provenance, request.body, request.arrived)
    writer = _writer(chat, resident, reply)
    last: Step | None = None
    try:
        with resident.engine.queue.turn(reply.cancelled):
            resident.check_unchanged()
            tally.text(writer.begin(content.push("") if content else prompt.prefill))
            job = Job(tokens, chat.max_tokens, chat.cache_prompt)
            pieces = resident.text_pieces(chat.stop)
            steps = complete(job, resident.engine, sampler, pieces, cancelled=reply.cancelled)
            for step in content_steps(steps, content, chat.stream) if content else steps:
                last = step
                tally.token()
                tally.text(step.text)
                writer.step(step)
        assert last is not None  # complete() yields at least one Step or raises
        writer.end(last, tally.receipt(last.progress.prompt_tokens, last.progress.completion_tokens))
    except Cancelled:
        writer.abandon()
        return _log(CLIENT_LEFT, len(tokens), last, "cancelled")
    return _log(200, len(tokens), last, last.finish or "")


def _writer(chat: ChatRequest, resident: Resident, reply: Reply) -> Writer:
    head = Head(resident.name)
    return StreamWriter(head, reply, chat.include_usage) if chat.stream else WholeWriter(head, reply)


def _log(status: int, prompt_tokens: int, last: Step | None, note: str) -> LogLine:
    if last is None:
        return LogLine(status, prompt_tokens, note=note)
    return LogLine(status, prompt_tokens, last.progress.cached_tokens, last.progress.completion_tokens, note)
