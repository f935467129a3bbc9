"""A response with several answers: to several prompts, or to one (`n`), computed together."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from bankml.api.call import Call
from bankml.api.formats.logprobs import Json, Logprobs
from bankml.api.formats.response import (
    BufferedResponse,
    Receipt,
    ResponseContext,
    SeveralFormat,
    StreamedResponse,
    dropped_keywords,
    warnings_of,
)
from bankml.api.generation import bind
from bankml.api.one_answer import timing_of
from bankml.api.replay_notes import AnswerNotes, replay_record
from bankml.engine.completion import PromptProgress, Step
from bankml.engine.several import PromptChoices, complete_several
from bankml.errors import Cancelled, RequestError
from bankml.http.exchange import Reply, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.http.tracked_reply import CANCELLED, CLIENT_LEFT, RequestCancelled
from bankml.library.request import GenerationRequest
from bankml.library.resident import Resident
from bankml.measure.energy import read_counters
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.messages import ChatMessages
from bankml.receipt.receipt import Tally
from bankml.receipt.replay_record import AnswerRecord
from bankml.sampling.parameters import RANDOM_SEED
from bankml.text.answer import content_of

SEEDS = 1 << 32


def requests_of(request: GenerationRequest, seeds: Sequence[int | None] = ()) -> Iterator[GenerationRequest]:
    """A request for each answer, those to the first prompt before those to the next. The copies of an answer draw with
    the seeds that follow the request's, as in llama-server, or with `seeds` where there are some."""
    if seeds:
        for seed, one in zip(seeds, requests_of(request), strict=True):
            yield replace(one, sampling=replace(one.sampling, seed=seed))
        return
    seed = request.sampling.seed
    for prompt in (request.prompt, *request.more_prompts):
        for copy in range(request.copies):
            one = replace(request, prompt=prompt, more_prompts=(), copies=1)
            if copy and seed is not None and seed != RANDOM_SEED:
                one = replace(one, sampling=replace(request.sampling, seed=(seed + copy) % SEEDS))
            yield one


def prepare(call: Call, resident: Resident, loading: float, reply: Reply) -> "PreparedAnswers":
    """Binds every answer to a model that took `loading` seconds to load. Raises RequestError."""
    if call.request.response.echo:
        raise RequestError("Field 'echo': it is for one prompt and one answer")
    contexts: list[ResponseContext] = []
    for index, one in enumerate(requests_of(call.request, call.seeds)):
        generation = bind(one, resident, call.context)
        contexts.append(ResponseContext(call.reference.name, one, resident, generation, loading, call.arrived, index))
    tally = call.tally(resident)
    first = call.format_of(contexts[0])
    if not isinstance(first, SeveralFormat):
        raise RequestError("Field 'n': this API has one answer a response")
    formats = [first, *(first.beside(context) for context in contexts[1:])]
    logprobs = [call.logprobs(resident, tally) for _ in contexts]
    shell = StreamedAnswers if call.request.response.stream else BufferedAnswers
    writer = shell(contexts, formats, logprobs, tally, reply)
    return PreparedAnswers(call, contexts, tally, writer, call.request.copies, first.id)


class BufferedAnswers:
    """Writes all answers at once."""

    def __init__(
        self,
        contexts: Sequence[ResponseContext],
        formats: Sequence[SeveralFormat],
        logprobs: Sequence[Logprobs],
        tally: Tally,
        reply: Reply,
    ) -> None:
        parts = zip(contexts, formats, logprobs, strict=True)
        self._answers = [BufferedResponse(context, form, one, reply) for context, form, one in parts]
        self._contexts = contexts
        self._format = formats[0]
        self._tally = tally
        self._reply = reply
        self._last: dict[int, Step] = {}

    def accept(self) -> None:
        """Nothing is sent before the end."""

    def progress(self, progress: PromptProgress) -> None:
        """A buffered response has none."""

    def step(self, index: int, step: Step) -> None:
        deltas = self._contexts[index].generation.parser.push(step.text, step.finish is not None)
        self._answers[index].step(step, deltas)
        self._last[index] = step

    def end(self, receipt: Receipt) -> None:
        messages, values = ChatMessages(), []
        for index, answer in enumerate(self._answers):
            values.append(answer.value(self._last[index], lambda value: value))
            self._tally.text(answer.content)
            messages.add(values[-1])
        dropped = self._contexts[0].generation.not_enforced
        whole = self._format.together(values)
        last = whole[-1] if isinstance(whole, list) else whole
        last |= {RECEIPT_KEY: receipt(messages)} | dropped_keywords(dropped)
        headers = warnings_of(dropped, self._contexts[0].request.response.left_out)
        self._reply.whole(200, json_bytes(whole), headers=headers)


class StreamedAnswers:
    """Writes the objects of all answers as they are generated; the last has the receipt."""

    def __init__(
        self,
        contexts: Sequence[ResponseContext],
        formats: Sequence[SeveralFormat],
        logprobs: Sequence[Logprobs],
        tally: Tally,
        reply: Reply,
    ) -> None:
        self._messages = ChatMessages()
        parts = zip(contexts, formats, logprobs, strict=True)
        self._answers = [StreamedResponse(context, form, one, reply, self._messages) for context, form, one in parts]
        self._contexts = contexts
        self._tally = tally
        self._left = len(contexts)
        self._held: tuple[int, Step] | None = None

    def accept(self) -> None:
        self._answers[0].accept()

    def progress(self, progress: PromptProgress) -> None:
        self._answers[0].progress(progress)

    def step(self, index: int, step: Step) -> None:
        deltas = self._contexts[index].generation.parser.push(step.text, step.finish is not None)
        self._tally.text(content_of(deltas))
        self._answers[index].step(step, deltas)
        if step.finish is None:
            return
        self._left -= 1
        if self._left:
            self._answers[index].close(step, None)
        else:
            self._held = (index, step)

    def end(self, receipt: Receipt) -> None:
        assert self._held is not None  # the last answer has ended
        index, step = self._held
        self._answers[index].close(step, receipt)
        self._answers[index].finish()


@dataclass(frozen=True)
class PreparedAnswers:
    """The answers of one request, `copies` to each prompt, bound to a loaded model."""

    call: Call
    contexts: Sequence[ResponseContext]
    tally: Tally
    writer: BufferedAnswers | StreamedAnswers
    copies: int
    id: str

    @property
    def thought(self) -> None:
        """No other request ends one of several thoughts."""

    @property
    def prompt_tokens(self) -> int:
        return sum(len(context.generation.job.prompt) for context in self.contexts[:: self.copies])

    def accept(self) -> None:
        """The request is accepted: a stream's head is sent. Raises ModelChanged."""
        self.contexts[0].resident.check_unchanged()
        self.writer.accept()

    def run(self, reply: Reply) -> RequestOutcome:
        """Generates the answers and writes them."""
        resident, writer = self.contexts[0].resident, self.writer
        last: dict[int, Step] = {}
        notes = [AnswerNotes(context.generation) for context in self.contexts]
        energy = read_counters()
        try:
            resident.check_unchanged()
            with closing(self._steps(reply.cancelled)) as steps:
                for index, step in steps:
                    last[index] = step
                    self.tally.token()
                    notes[index].add(step)
                    writer.step(index, step)
            resident.check_unchanged()  # the receipt is about the file as it was throughout
            if resident.engine.restored and any(step.progress.cached_tokens for step in last.values()):
                self.tally.restored_slot(resident.engine.restored[-1])
            records = [one.record(last[index]) for index, one in enumerate(notes)]
            writer.end(lambda messages: self._receipt(messages, last, records))
        except Cancelled:
            raise RequestCancelled(self._outcome(CLIENT_LEFT, last, CANCELLED)) from None
        ended = last[0]
        timing = timing_of(self.contexts[0], self.tally, ended, ended.finish or "", energy)
        timing = replace(timing, request_sha256=self.tally.request_sha256, response_sha256=self.tally.response_sha256)
        return replace(self._outcome(200, last, ended.finish or ""), timing=timing)

    def _steps(self, cancelled: Callable[[], bool]) -> Generator[tuple[int, Step]]:
        asked = []
        for at in range(0, len(self.contexts), self.copies):
            generations = [context.generation for context in self.contexts[at : at + self.copies]]
            answers = [(one.sampler, one.pieces) for one in generations]
            asked.append(PromptChoices(generations[0].job, answers))
        engine = self.contexts[0].resident.engine
        width = len(engine.slots)
        return complete_several(engine, asked, width, cancelled=cancelled, progress=self.writer.progress)

    def _receipt(self, messages: ChatMessages, last: dict[int, Step], records: Sequence[AnswerRecord]) -> Json:
        self.tally.message(messages.sha256(), messages.finish_reason)
        tokens = sum(step.progress.completion_tokens for step in last.values())
        first = self.contexts[0]
        replay = replay_record(self.call, first.resident, first.generation, records)
        return self.tally.receipt(self.prompt_tokens, tokens, first.generation.sampler.seed, replay)

    def _outcome(self, status: int, last: dict[int, Step], note: str) -> RequestOutcome:
        stats = [last[index].progress for index in sorted(last)]
        cached = sum(one.cached_tokens for one in stats[:: self.copies])
        return RequestOutcome(status, self.prompt_tokens, cached, sum(one.completion_tokens for one in stats), note)
