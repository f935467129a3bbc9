"""A response with one answer: generating it, and writing it with its receipt."""

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace

from bankml.api.call import Call, WriterOf
from bankml.api.echo import echo_of
from bankml.api.formats.logprobs import Json
from bankml.api.formats.response import ResponseContext, Writer
from bankml.api.generation import bind
from bankml.api.replay_notes import AnswerNotes, replay_record
from bankml.engine.completion import NO_TOKEN, GenerationStats, Step
from bankml.engine.prompt_scores import PromptScores
from bankml.errors import Cancelled
from bankml.grammar.sampler import GrammarSampler
from bankml.grammar.thought import ThoughtTracker
from bankml.http.exchange import Reply, RequestOutcome
from bankml.http.tracked_reply import CANCELLED, CLIENT_LEFT, RequestCancelled
from bankml.library.resident import Resident
from bankml.measure.energy import Counters, joules, read_counters
from bankml.measure.timing import Timing
from bankml.receipt.messages import ChatMessages
from bankml.receipt.receipt import Tally
from bankml.text.answer import content_of


@dataclass(frozen=True)
class PreparedAnswer:
    """A request bound to a loaded model, so that generating can begin at once."""

    call: Call
    context: ResponseContext
    tally: Tally
    writer: Writer
    id: str

    @property
    def thought(self) -> ThoughtTracker | None:
        """The thought that another request may end."""
        sampler, controlled = self.context.generation.sampler, self.context.request.thought.controlled
        return sampler.thought if controlled and isinstance(sampler, GrammarSampler) else None

    @property
    def prompt_tokens(self) -> int:
        return len(self.context.generation.job.prompt)

    def accept(self) -> None:
        """The request is accepted: a stream's head is sent. Raises ModelChanged."""
        self.context.resident.check_unchanged()
        self.writer.accept()

    def run(self, reply: Reply) -> RequestOutcome:
        """Generates the answer and writes it."""
        return _generate(self, reply)


def prepare(call: Call, resident: Resident, loading: float, reply: Reply, writer_of: WriterOf) -> PreparedAnswer:
    """Binds a request to a model that took `loading` seconds to load. Raises RequestError."""
    request = call.request
    if call.seeds:
        request = replace(request, sampling=replace(request.sampling, seed=call.seeds[0]))
    generation = bind(request, resident, call.context)
    context = ResponseContext(call.reference.name, call.request, resident, generation, loading, call.arrived)
    tally = call.tally(resident)
    form = call.format_of(context)
    return PreparedAnswer(
        call, context, tally, writer_of(context, form, call.logprobs(resident, tally), reply), form.id
    )


def _generate(prepared: PreparedAnswer, reply: Reply) -> RequestOutcome:
    context, tally, writer = prepared.context, prepared.tally, prepared.writer
    generation, resident = context.generation, context.resident
    last: Step | None = None
    notes = AnswerNotes(generation)
    energy = read_counters()
    try:
        resident.check_unchanged()
        if context.request.response.echo:
            notes.traced = _echo(prepared, reply)
        with closing(_steps(prepared, reply)) as steps:
            for step in steps:
                last = step
                if step.token == NO_TOKEN:
                    break
                deltas = generation.parser.push(step.text, step.finish is not None)
                tally.token()
                notes.add(step)
                tally.text(content_of(deltas))
                if not writer.step(step, deltas):
                    break
        resident.check_unchanged()  # the receipt is about the file as it was throughout
        assert last is not None  # complete() yields at least one Step or raises
        stats = last.progress
        seed = generation.sampler.seed
        if stats.cached_tokens and resident.engine.restored:
            tally.restored_slot(resident.engine.restored[-1])

        record = notes.record(last)
        replay = replay_record(prepared.call, resident, generation, [record])

        def receipt(messages: ChatMessages) -> Json:
            tally.message(messages.sha256(), messages.finish_reason)
            return tally.receipt(stats.prompt_tokens, stats.completion_tokens, seed, replay)

        writer.end(last, receipt)
    except Cancelled:
        if last is None:
            raise
        timing = timing_of(context, tally, last, CANCELLED, energy)
        raise RequestCancelled(_outcome(CLIENT_LEFT, last, CANCELLED, timing)) from None
    finish = last.finish or ""
    timing = timing_of(context, tally, last, finish, energy)
    timing = replace(timing, request_sha256=tally.request_sha256, response_sha256=tally.response_sha256)
    return _outcome(200, last, finish, timing)


def _echo(prepared: PreparedAnswer, reply: Reply) -> bool:
    """Writes the prompt, with its tokens' probabilities where those of tokens are asked for. Returns whether nothing
    that was computed before decided their bits."""
    context, generation = prepared.context, prepared.context.generation
    prompt, resident = generation.job.prompt, context.resident
    scores = PromptScores((), traced=True)
    if context.request.sampling.n_probs:
        scores = resident.engine.score(generation.job, generation.sampler, cancelled=reply.cancelled)
    echo = echo_of(prompt, resident.tokens, scores.probs)
    prepared.tally.text(echo.text)
    prepared.writer.echo(echo)
    return scores.traced


def _steps(prepared: PreparedAnswer, reply: Reply) -> Generator[Step]:
    """The answer token by token; of a prompt that is only to be echoed one Step without a token."""
    context, generation = prepared.context, prepared.context.generation
    job = generation.job
    if context.request.response.echo and job.max_tokens == 0:
        now = time.monotonic()
        yield Step(NO_TOKEN, "", "length", GenerationStats(len(job.prompt), 0, 0, now, now, now))
        return
    progress = prepared.writer.progress
    yield from context.resident.engine.complete(
        job, generation.sampler, generation.pieces, cancelled=reply.cancelled, progress=progress
    )


def timing_of(context: ResponseContext, tally: Tally, last: Step, finish: str, energy: Counters | None) -> Timing:
    """The times of an answer whose last step is `last`, for the metrics."""
    sampler = context.generation.sampler
    constrained = sampler if isinstance(sampler, GrammarSampler) else None
    return Timing(
        context.model,
        finish,
        last.progress.prompt_ms,
        tally.ttft_ms,
        last.progress.predicted_ms,
        grammar_ms=None if constrained is None else constrained.seconds * 1000,
        resampled=None if constrained is None else constrained.resampled,
        energy_j=joules(energy, read_counters()),
    )


def _outcome(status: int, last: Step, note: str, timing: Timing) -> RequestOutcome:
    stats = last.progress
    return RequestOutcome(status, stats.prompt_tokens, stats.cached_tokens, stats.completion_tokens, note, timing)
