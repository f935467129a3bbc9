"""Computes the answers of a request again, on the path that requests take, with what a receipt says of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bankml.api import one_answer, several_answers
from bankml.api.call import Call, WriterOf, response_writer
from bankml.api.formats.logprobs import Logprobs
from bankml.api.formats.response import ResponseContext, ResponseFormat, Writer
from bankml.api.ollama import answers as ollama
from bankml.api.openai_routes import CALLS, CallOf
from bankml.engine.completion import Step
from bankml.engine.engine import Engine
from bankml.engine.slot import Slot
from bankml.errors import BankmlError
from bankml.http.collected_reply import CollectedReply
from bankml.http.exchange import Reply, Request
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.replay_record import ReplayRecord
from bankml.replay.proposals import TextProposals
from bankml.replay.speculation import SpeculativePass
from bankml.replay.traced_slots import TracedSlots
from bankml.replay.verdict import NotReplayable
from bankml.text.answer import Delta
from bankml.text.messages import Conversation

CALLS_OF: Mapping[str, CallOf] = {**CALLS, "/api/chat": ollama.chat_call, "/api/generate": ollama.generate_call}


def call_of(library: Library, record: ReplayRecord, body: bytes, receipt_body: bytes) -> Call:
    """The call that `body` makes on the record's route, with the record's seeds and moment; its receipt is about
    `receipt_body`. Raises NotReplayable."""
    make = CALLS_OF.get(record.route)
    if make is None:
        raise NotReplayable("route", f"answers of {record.route!r:.100} are not replayed")
    try:
        call = make(library, Request("POST", record.route, "", {}, body, "gateway", time.monotonic()))
    except BankmlError as error:
        raise NotReplayable("request", f"the request is refused here: {error.message}") from error
    request = replace(call.request, slot=None)
    if isinstance(request.prompt, Conversation) and record.template is not None:
        request = replace(request, prompt=replace(request.prompt, now=record.template.rendered_at))
    if request.answers != len(record.answers):
        answers = f"asks for {request.answers} answers, the receipt is of {len(record.answers)}"
        raise NotReplayable("request", f"the request {answers}")
    seeds = tuple(answer.seed for answer in record.answers)
    return replace(call, request=request, seeds=seeds, body=receipt_body, fields=record.fields)


@dataclass(frozen=True)
class Rerun:
    """A response computed again: its bytes, and how many rows were computed for those that were sampled from."""

    body: bytes
    computed: int
    used: int
    slots: Sequence[Slot]


def rerun(
    call: Call,
    resident: Resident,
    record: ReplayRecord,
    texts: Mapping[int, str],
    tokens_of_all: int,
    width: int,
    cancelled: Callable[[], bool],
) -> Rerun:
    """Computes the answers of `call` with the model of `resident`, `width` tokens at once.

    `texts` are the known ones, by the number of the answer, which have `tokens_of_all` tokens together. The
    resident's engine is another one afterwards, whose slots have what was computed. Raises what answering raises.
    """
    tokens = resident.tokens

    def proposals(number: int) -> TextProposals:
        return TextProposals(texts.get(number, ""), lambda text: tokens.encode(text, False), tokens.piece, width)

    model = SpeculativePass(resident.engine.model, 1 if resident.engine.windowed else width)
    engine = Engine(model, tokens)
    slots = [Slot(model.new_cells(), number) for number in range(call.request.copies)]
    engine.slots = TracedSlots(slots, model, record.answers, proposals)
    resident.engine = engine
    reply = CollectedReply(cancelled)
    if call.request.answers > 1:
        several_answers.prepare(call, resident, 0.0, reply).run(reply)
    else:
        one_answer.prepare(call, resident, 0.0, reply, _writer_of(record, tokens_of_all)).run(reply)
    engine.scheduler.close()
    return Rerun(reply.body, model.computed, model.used, slots)


class _StoppedWriter:
    """Ends an answer after `most` tokens, where the program that had it wanted no more."""

    def __init__(self, whole: Writer, most: int) -> None:
        self._left = most
        self.accept, self.progress, self.echo, self.end = whole.accept, whole.progress, whole.echo, whole.end
        self._step = whole.step

    def step(self, step: Step, deltas: Sequence[Delta]) -> bool:
        self._left -= 1
        return self._step(step, deltas) and self._left > 0


def _writer_of(record: ReplayRecord, tokens: int) -> WriterOf:
    """What writes the one answer of `record`, which has `tokens` tokens; without a reason to finish a host's callback
    stopped it (the C API)."""

    def stopped(context: ResponseContext, form: ResponseFormat, logprobs: Logprobs, reply: Reply) -> Writer:
        return _StoppedWriter(response_writer(context, form, logprobs, reply), tokens)

    return response_writer if record.answers[0].finish_reason else stopped
