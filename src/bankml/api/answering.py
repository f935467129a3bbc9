"""One answer from its turn in the line to its last byte, whatever its form: chat or completion, whole or streamed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bankml.api.exchange import LogLine, Reply
from bankml.engine.completion import Job, Step, complete, fits
from bankml.engine.parts import TextPieces, TokenSampler
from bankml.engine.queue import Cancelled
from bankml.library.resident import Resident
from bankml.receipt.receipt import Tally

CLIENT_LEFT = 499
"""The status a log line gives a request whose client hung up, as nginx does; it is never sent."""

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

    def abandon(self) -> None:
        """There will be no answer: the client left (and reads nothing) or the server is stopping. A stream that has
        begun just breaks off, so that nobody takes it for complete."""


def respond(generation: Generation, resident: Resident, tally: Tally, writer: Writer, reply: Reply) -> LogLine:
    """Stands in line, generates and writes. Raises, before anything is written, what can still be wrong by then."""
    job = generation.job
    fits(len(job.prompt), resident.n_ctx)
    last: Step | None = None
    try:
        with resident.engine.queue.turn(reply.cancelled):
            resident.check_unchanged()
            writer.begin(generation.prefill)
            tally.text(generation.prefill)
            steps = complete(job, resident.engine, generation.sampler, generation.pieces, cancelled=reply.cancelled)
            for step in generation.told(steps):
                last = step
                tally.token()
                tally.text(step.text)
                writer.step(step)
            resident.check_unchanged()  # the receipt speaks of the file as it was throughout
        assert last is not None  # complete() yields at least one Step or raises
        counts = last.progress
        writer.end(last, lambda: tally.receipt(counts.prompt_tokens, counts.completion_tokens))
    except Cancelled:
        writer.abandon()
        return _log(CLIENT_LEFT, len(job.prompt), last, "cancelled")
    return _log(200, len(job.prompt), last, last.finish or "")


def _log(status: int, prompt_tokens: int, last: Step | None, note: str) -> LogLine:
    if last is None:
        return LogLine(status, prompt_tokens, note=note)
    return LogLine(status, prompt_tokens, last.progress.cached_tokens, last.progress.completion_tokens, note)
