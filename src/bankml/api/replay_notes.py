"""What a receipt says of how its answers were computed, noted while they are."""

from collections.abc import Sequence

from bankml.api.call import Call
from bankml.api.generation import Generation
from bankml.engine.completion import NO_TOKEN, Step
from bankml.library.resident import Resident
from bankml.receipt.receipt import sha256_hex
from bankml.receipt.replay_record import AnswerRecord, ReplayRecord, Span, token_hash


class AnswerNotes:
    """The tokens of one answer, as they come."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._tokens: list[int] = []

    def add(self, step: Step) -> None:
        if step.token != NO_TOKEN:
            self._tokens.append(step.token)

    def record(self, last: Step, windowed: bool) -> AnswerRecord:
        """The record of the answer, whose last step is `last`. Where the cells of a sliding window are depends on all
        that was computed before, so a prefix from the cache is not described there."""
        cached = last.progress.cached_tokens
        spans = None if (windowed and cached) else _spans(last)
        return AnswerRecord(
            token_hash(self._generation.job.prompt),
            token_hash(self._tokens),
            self._generation.sampler.seed,
            last.finish or "",
            cached,
            spans,
        )


def _spans(last: Step) -> tuple[Span, ...]:
    return tuple((span.position, span.rows, span.kept) for span in last.trace or ())


def replay_record(
    call: Call, resident: Resident, generation: Generation, answers: Sequence[AnswerRecord]
) -> ReplayRecord | None:
    """The record of a response, `generation` being that of its first answer; None where answers cannot be replayed."""
    if resident.arithmetic is None:
        return None
    chat = generation.rendered_at is not None
    template = sha256_hex(resident.template.source.encode("utf-8", "surrogatepass")) if chat else None
    return ReplayRecord(call.route, resident.arithmetic, template, generation.rendered_at, tuple(answers), call.fields)
