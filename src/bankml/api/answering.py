"""The life of one response, whichever API it is for: queue, load the model, generate, write, receipt."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bankml.api.echo import echo_of
from bankml.api.formats.logprobs import Json, Logprobs
from bankml.api.formats.response import (
    BufferedResponse,
    ResponseContext,
    ResponseFormat,
    StreamedResponse,
    Writer,
)
from bankml.api.generation import ContextRule, bind
from bankml.engine.completion import NO_TOKEN, GenerationStats, Step, complete
from bankml.engine.prompt_scores import score_prompt
from bankml.errors import Cancelled
from bankml.grammar.sampler import GrammarSampler
from bankml.grammar.thought import ThoughtTracker
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.tracked_reply import CANCELLED, CLIENT_LEFT, RequestCancelled
from bankml.library.layer import context_of, with_layer
from bankml.library.reference import Reference
from bankml.library.request import GenerationRequest
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.measure.energy import Counters, joules, read_counters
from bankml.measure.timing import Timing
from bankml.receipt.messages import ChatMessages
from bankml.receipt.receipt import LayerIdentity, Provenance, Tally
from bankml.sampling.logprobs import TokenProbs
from bankml.text.answer import content_of
from bankml.text.messages import Conversation

FormatOf = Callable[[ResponseContext], ResponseFormat]

WriterOf = Callable[[ResponseContext, ResponseFormat, Logprobs, Reply], Writer]


@dataclass(frozen=True)
class Call:
    """One request on its way to a model.

    The receipt is about the bytes `body`, which arrived at `arrived` (time.monotonic). `request` is what they ask for,
    over the layer of the model that `reference` names; the model stays loaded for `keep` seconds afterwards.
    `logprob_shape` makes another API's logprobs entry of llama-server's.
    """

    body: bytes
    arrived: float
    request: GenerationRequest
    reference: Reference
    context: ContextRule
    format_of: FormatOf
    keep: float | None = FOR_GOOD
    logprob_shape: Callable[[Json], Json] = field(default=lambda entry: entry)


def call_of(library: Library, request: GenerationRequest, http: Request, format_of: FormatOf) -> Call:
    """The call of an OpenAI or llama-server request. Raises RequestError, NotFound, Refused.

    A conversation loses its oldest messages only where the model's layer sets a context; otherwise one that does not
    fit is refused, as in llama-server. A raw prompt's continuation ends with the context.
    """
    reference = library.resolve(request.model)
    layer = reference.layer
    n_ctx = context_of(reference.name, layer, library.n_ctx)
    layered = layer is not None and layer.num_ctx is not None
    raw = not isinstance(request.prompt, Conversation)
    context = ContextRule(n_ctx, truncate=not raw) if raw or layered else ContextRule()
    return Call(http.body, http.arrived, with_layer(layer, request), reference, context, format_of)


def response_writer(context: ResponseContext, form: ResponseFormat, logprobs: Logprobs, reply: Reply) -> Writer:
    """The response as the request asked for it: buffered or streamed."""
    if context.request.response.stream:
        return StreamedResponse(context, form, logprobs, reply)
    return BufferedResponse(context, form, logprobs, reply)


@dataclass(frozen=True)
class PreparedGeneration:
    """A request bound to a loaded model, so that generating can begin at once."""

    context: ResponseContext
    tally: Tally
    writer: Writer
    id: str


def answer(library: Library, call: Call, reply: Reply, writer_of: WriterOf = response_writer) -> RequestOutcome:
    """Waits for the model, loads it, generates and writes.

    A request to the loaded model is bound to it before it waits, so that its errors are reported at once, and again
    only when the model was switched meanwhile. Raises, before anything is written, what can still be wrong by then.
    """

    def prepare(resident: Resident, loading: float) -> PreparedGeneration:
        generation = bind(call.request, resident, call.context)
        context = ResponseContext(call.reference.name, call.request, resident, generation, loading, call.arrived)
        tally = Tally(_provenance(resident, call.reference), call.body, call.arrived)
        logprobs = Logprobs(resident.tokens.piece, tally, call.logprob_shape, call.request.response.alternatives)
        form = call.format_of(context)
        return PreparedGeneration(context, tally, writer_of(context, form, logprobs, reply), form.id)

    resident = library.resident_as(call.reference)
    prepared = None if resident is None else prepare(resident, 0.0)
    try:
        if prepared is not None:  # a stream's head is sent before its request waits
            prepared.context.resident.check_unchanged()
            prepared.writer.accept()
        with library.turn(reply.cancelled):
            began = time.monotonic()
            ready = library.ready(call.reference)
            try:
                if prepared is None or ready is not resident:
                    if reply.cancelled():
                        raise Cancelled
                    accepted = prepared is not None
                    prepared = prepare(ready, time.monotonic() - began)
                    if not accepted:
                        ready.check_unchanged()
                        prepared.writer.accept()
                with library.live.generating(prepared.id, _controlled(prepared.context)):
                    return _generate(prepared, reply)
            finally:
                library.keep(call.keep)
    except RequestCancelled:
        raise
    except Cancelled:
        if prepared is None:
            raise
        n_prompt = len(prepared.context.generation.job.prompt)
        raise RequestCancelled(RequestOutcome(CLIENT_LEFT, n_prompt, note=CANCELLED)) from None


def _controlled(context: ResponseContext) -> ThoughtTracker | None:
    """The thought that another request may end."""
    sampler = context.generation.sampler
    return sampler.thought if context.request.thought.controlled and isinstance(sampler, GrammarSampler) else None


def _provenance(resident: Resident, reference: Reference) -> Provenance:
    """Where the tokens come from: the file, and the layer over it where the model is a derived one."""
    derived = reference.derived
    layer = None if derived is None else LayerIdentity(derived.name, derived.digest)
    return replace(resident.provenance, layer=layer)


def _generate(prepared: PreparedGeneration, reply: Reply) -> RequestOutcome:
    context, tally, writer = prepared.context, prepared.tally, prepared.writer
    generation, resident = context.generation, context.resident
    last: Step | None = None
    energy = read_counters()
    try:
        resident.check_unchanged()
        if context.request.response.echo:
            _echo(prepared, reply)
        for step in _steps(prepared, reply):
            last = step
            if step.token == NO_TOKEN:
                break
            deltas = generation.parser.push(step.text, step.finish is not None)
            tally.token()
            tally.text(content_of(deltas))
            if not writer.step(step, deltas):
                break
        resident.check_unchanged()  # the receipt is about the file as it was throughout
        assert last is not None  # complete() yields at least one Step or raises
        stats = last.progress
        seed = generation.sampler.seed
        if stats.cached_tokens and resident.engine.restored:
            tally.restored_slot(resident.engine.restored[-1])

        def receipt(messages: ChatMessages) -> Json:
            tally.message(messages.sha256(), messages.finish_reason)
            return tally.receipt(stats.prompt_tokens, stats.completion_tokens, seed)

        writer.end(last, receipt)
    except Cancelled:
        if last is None:
            raise
        timing = _timing(prepared, last, CANCELLED, energy)
        raise RequestCancelled(_outcome(CLIENT_LEFT, last, CANCELLED, timing)) from None
    finish = last.finish or ""
    timing = _timing(prepared, last, finish, energy)
    timing = replace(timing, request_sha256=tally.request_sha256, response_sha256=tally.response_sha256)
    return _outcome(200, last, finish, timing)


def _echo(prepared: PreparedGeneration, reply: Reply) -> None:
    """Writes the prompt, with its tokens' probabilities where those of tokens are asked for."""
    context, generation = prepared.context, prepared.context.generation
    prompt, resident = generation.job.prompt, context.resident
    scores: Sequence[TokenProbs] = ()
    if context.request.sampling.n_probs:
        scores = score_prompt(prompt, resident.engine, generation.sampler, cancelled=reply.cancelled)
    echo = echo_of(prompt, resident.tokens, scores)
    prepared.tally.text(echo.text)
    prepared.writer.echo(echo)


def _steps(prepared: PreparedGeneration, reply: Reply) -> Iterator[Step]:
    """The answer token by token; of a prompt that is only to be echoed one Step without a token."""
    context, generation = prepared.context, prepared.context.generation
    job = generation.job
    if context.request.response.echo and job.max_tokens == 0:
        now = time.monotonic()
        return iter([Step(NO_TOKEN, "", "length", GenerationStats(len(job.prompt), 0, 0, now, now, now))])
    engine, pieces = context.resident.engine, generation.pieces
    progress = prepared.writer.progress
    return complete(job, engine, generation.sampler, pieces, cancelled=reply.cancelled, progress=progress)


def _timing(prepared: PreparedGeneration, last: Step, finish: str, energy: Counters | None) -> Timing:
    sampler = prepared.context.generation.sampler
    constrained = sampler if isinstance(sampler, GrammarSampler) else None
    return Timing(
        prepared.context.model,
        finish,
        last.progress.prompt_ms,
        prepared.tally.ttft_ms,
        last.progress.predicted_ms,
        grammar_ms=None if constrained is None else constrained.seconds * 1000,
        resampled=None if constrained is None else constrained.resampled,
        energy_j=joules(energy, read_counters()),
    )


def _outcome(status: int, last: Step, note: str, timing: Timing) -> RequestOutcome:
    stats = last.progress
    return RequestOutcome(status, stats.prompt_tokens, stats.cached_tokens, stats.completion_tokens, note, timing)
