"""What a receipt says of how its answers were computed, noted while they are."""

from collections.abc import Sequence

from bankml.api.call import Call
from bankml.api.generation import Generation
from bankml.engine.completion import NO_TOKEN, Step
from bankml.library.resident import Resident
from bankml.receipt.receipt import sha256_hex
from bankml.receipt.replay_record import AnswerRecord, PromptRendering, ReplayRecord, token_hash


class AnswerNotes:
    """The tokens of one answer, as they come."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._tokens: list[int] = []
        self.traced = True
        """Nothing that was computed before decided the bits of what came with the answer."""

    def add(self, step: Step) -> None:
        if step.token != NO_TOKEN:
            self._tokens.append(step.token)

    def record(self, last: Step) -> AnswerRecord:
        """The record of the answer, whose last step is `last`."""
        trace = last.trace if last.token != NO_TOKEN else ()
        spans = None if trace is None or not self.traced else [(one.position, one.rows, one.kept) for one in trace]
        return AnswerRecord(
            token_hash(self._generation.job.prompt),
            token_hash(self._tokens),
            self._generation.sampler.seed,
            last.finish or "",
            last.progress.cached_tokens,
            None if spans is None else tuple(spans),
        )


def replay_record(
    call: Call, resident: Resident, generation: Generation, answers: Sequence[AnswerRecord]
) -> ReplayRecord | None:
    """The record of a response, `generation` being that of its first answer; None where answers cannot be replayed."""
    if resident.arithmetic is None:
        return None
    moment, template = generation.rendered_at, None
    if moment is not None:
        source = sha256_hex(resident.template.source.encode("utf-8", "surrogatepass"))
        template = PromptRendering(source, moment, resident.reasoning, resident.content_special)
    return ReplayRecord(call.route, resident.arithmetic, template, tuple(answers), call.fields)
