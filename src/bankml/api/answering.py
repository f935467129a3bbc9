"""One answer from its turn in the line to its last byte, whatever its form: chat or completion, whole or streamed."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from bankml.engine.completion import Job, Step, TokenReport, complete, fits
from bankml.engine.parts import TextPieces, TokenSampler
from bankml.errors import Cancelled
from bankml.grammar.sampler import GrammarSampler
from bankml.http.exchange import Reply, RequestOutcome
from bankml.http.tracked_reply import CANCELLED, CLIENT_LEFT, RequestCancelled
from bankml.library.reference import Reference
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.measure.energy import Counters, joules, read_counters
from bankml.measure.timing import Timing
from bankml.receipt.receipt import Tally

Receipt = Callable[[], Mapping[str, object]]
"""Gives the receipt of an answer of which everything has been written."""


@dataclass(frozen=True)
class Generation:
    """What is to be generated and how. `prefill` is the beginning of the answer that the request brought along."""

    job: Job
    sampler: TokenSampler
    pieces: TextPieces
    prefill: str = ""
    told: Callable[[Iterable[Step]], Iterable[Step]] = iter
    """What of each Step is told; for an answer that is held to JSON, its value's growth."""


class Writer(Protocol):
    """Where the Steps of one answer go. `step` and `end` raise Cancelled when nobody reads any more."""

    def begin(self, prefill: str) -> None:
        """The answer begins with a text that the request brought along, often none."""

    def step(self, step: Step) -> None: ...

    def end(self, last: Step, receipt: Receipt) -> None:
        """The answer is complete; the receipt is asked for when all it counts has been written."""


@dataclass(frozen=True)
class PreparedGeneration:
    """An answer that the model it was prepared with can begin at once."""

    generation: Generation
    tally: Tally
    writer: Writer


Prepare = Callable[[Resident, float], PreparedGeneration]
"""Reads a request for the model that is to answer it, which took so many seconds to make resident. Raises RequestError
for everything that can be wrong with it. It may be called twice, so it changes nothing."""


def answer(
    library: Library, reference: Reference, prepare: Prepare, reply: Reply, keep: float | None = FOR_GOOD
) -> RequestOutcome:
    """Stands in line, has the model made resident, generates and writes; the model then stays for `keep` seconds.

    A request to the resident model is read before it stands in line, so that its mistakes are told at once, and again
    only when the model was switched meanwhile. Raises, before anything is written, what can still be wrong by then.
    """
    resident = library.resident_as(reference)
    prepared = None if resident is None else _prepared(prepare, resident, 0.0)
    try:
        with library.turn(reply.cancelled):
            began = time.monotonic()
            ready = library.ready(reference)
            try:
                if prepared is None or ready is not resident:
                    if reply.cancelled():
                        raise Cancelled
                    prepared = _prepared(prepare, ready, time.monotonic() - began)
                return _respond(prepared, ready, reference.name, reply)
            finally:
                library.keep(keep)
    except RequestCancelled:
        raise
    except Cancelled:
        if prepared is None:
            raise
        raise RequestCancelled(
            RequestOutcome(CLIENT_LEFT, len(prepared.generation.job.prompt), note=CANCELLED)
        ) from None


class BufferingWriter:
    """A Writer's part that every answer has which is written whole: its text and its probabilities, gathered."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._text: list[str] = []
        self._entries: list[TokenReport] = []

    def begin(self, prefill: str) -> None:
        self._text.append(prefill)

    def step(self, step: Step) -> None:
        self._text.append(step.text)
        if step.entry is not None:
            self._entries.append(step.entry)


def _prepared(prepare: Prepare, resident: Resident, loading: float) -> PreparedGeneration:
    prepared = prepare(resident, loading)
    fits(len(prepared.generation.job.prompt), resident.n_ctx)
    return prepared


def _respond(prepared: PreparedGeneration, resident: Resident, name: str, reply: Reply) -> RequestOutcome:
    generation, tally, writer = prepared.generation, prepared.tally, prepared.writer
    last: Step | None = None
    energy = read_counters()
    try:
        resident.check_unchanged()
        writer.begin(generation.prefill)
        tally.text(generation.prefill)
        steps = complete(
            generation.job, resident.engine, generation.sampler, generation.pieces, cancelled=reply.cancelled
        )
        for step in generation.told(steps):
            last = step
            tally.token()
            tally.text(step.text)
            writer.step(step)
        resident.check_unchanged()  # the receipt speaks of the file as it was throughout
        assert last is not None  # complete() yields at least one Step or raises
        counts = last.progress
        if counts.cached_tokens and resident.engine.restored:
            tally.restored_slot(resident.engine.restored[-1])
        writer.end(last, lambda: tally.receipt(counts.prompt_tokens, counts.completion_tokens))
    except Cancelled:
        if last is None:
            raise
        timing = _timing(prepared, name, last, CANCELLED, energy)
        raise RequestCancelled(_log(CLIENT_LEFT, last, CANCELLED, timing)) from None
    finish = last.finish or ""
    timing = _timing(prepared, name, last, finish, energy)
    timing = replace(timing, request_sha256=tally.request_sha256, response_sha256=tally.response_sha256)
    return _log(200, last, finish, timing)


def _timing(prepared: PreparedGeneration, name: str, last: Step, finish: str, energy: Counters | None) -> Timing:
    sampler = prepared.generation.sampler
    held = sampler if isinstance(sampler, GrammarSampler) else None
    return Timing(
        name,
        finish,
        last.progress.prompt_ms,
        prepared.tally.ttft_ms,
        last.progress.predicted_ms,
        grammar_ms=None if held is None else held.seconds * 1000,
        resampled=None if held is None else held.resampled,
        energy_j=joules(energy, read_counters()),
    )


def _log(status: int, last: Step, note: str, timing: Timing) -> RequestOutcome:
    counts = last.progress
    return RequestOutcome(status, counts.prompt_tokens, counts.cached_tokens, counts.completion_tokens, note, timing)
