"""`POST /completion` as llama-server speaks it, with a receipt."""

from collections.abc import Mapping

from bankml.api.answering import (
    BufferingWriter,
    Generation,
    PreparedGeneration,
    Receipt,
    Writer,
    answer,
)
from bankml.api.completion_request import CompletionRequest, completion_request, prompt_tokens, read_completion
from bankml.api.ending import stop_type, stop_word_tokens
from bankml.api.fitting import limited
from bankml.api.logprobs import Logprobs, without_stop_word
from bankml.api.openai import timings
from bankml.engine.completion import Job, Step
from bankml.errors import Cancelled
from bankml.grammar.constraint import Constraint, completion_constraint
from bankml.http.exchange import EVENT_STREAM, Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes, sse_event
from bankml.library.layer import context_of, with_parameters
from bankml.library.reference import Reference
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.receipt import Tally

Json = dict[str, object]


def completion(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """Answers one request. What can be wrong with it is found before it stands in line for the resident model."""
    asked = read_completion(request.body)
    reference = library.resolve(asked.model)
    asked, n_ctx = over_layer(asked, reference, library.n_ctx)

    def prepare(resident: Resident, loading: float) -> PreparedGeneration:
        wanted = completion_constraint(asked.body)
        generation = limited(completion_generation(asked, wanted, resident), min(n_ctx, resident.n_ctx))
        tally = Tally(resident.provenance, request.body, request.arrived)
        told = Answer(asked, generation, reference.name, resident, "" if wanted is None else wanted.grammar)
        writer: Writer = (StreamWriter if asked.stream else WholeWriter)(
            told, Logprobs(resident.tokens.piece, tally), reply
        )
        return PreparedGeneration(generation, tally, writer)

    return answer(library, reference, prepare, reply)


def over_layer(asked: CompletionRequest, reference: Reference, n_ctx: int) -> tuple[CompletionRequest, int]:
    """The request over the PARAMETERs of a derived model, and the tokens of its context, of `n_ctx` at most."""
    if reference.layer is not None:
        asked = completion_request(with_parameters(reference.layer, asked.body))
    return asked, context_of(reference.name, reference.layer, n_ctx)


def completion_generation(asked: CompletionRequest, wanted: Constraint | None, resident: Resident) -> Generation:
    """What `asked` asks the resident model for. Raises RequestError for tokens, samplers, grammars that cannot be."""
    job = Job(prompt_tokens(asked.prompt, resident.tokens), asked.max_tokens, asked.cache_prompt)
    sampler = resident.sampler(asked.body, chat=False)
    if wanted is not None:
        sampler = resident.held(sampler, wanted)
    return Generation(job, sampler, resident.text_pieces(asked.stop))


class Answer:
    """What both forms of an answer say."""

    def __init__(
        self, asked: CompletionRequest, generation: Generation, model: str, resident: Resident, grammar: str
    ) -> None:
        self.return_tokens = asked.return_tokens
        self._asked = asked
        self._generation = generation
        self._model = model
        self._resident = resident
        self._grammar = grammar

    def stop_word_tokens(self, last: Step) -> int:
        return stop_word_tokens(last, self._generation.pieces, self._resident.tokens)

    def final(self, text: str, sent: str, tokens: list[int], last: Step) -> Json:
        """The object that ends an answer of `text`, of which `sent` and `tokens` are in this object."""
        counts = last.progress
        held = counts.prompt_tokens + counts.completion_tokens
        return {
            "index": 0,
            "content": sent,
            "tokens": tokens,
            "id_slot": 0,
            "stop": True,
            "model": self._model,
            "tokens_predicted": counts.completion_tokens,
            "tokens_evaluated": counts.prompt_tokens,
            "generation_settings": self._settings(),
            "prompt": self._prompt(),
            "has_new_line": "\n" in text,
            "truncated": held >= self._resident.n_ctx,
            "stop_type": stop_type(last, self._resident.tokens),
            "stopping_word": self._generation.pieces.stop_word or "",
            "tokens_cached": held - 1,  # the last token was drawn and not computed
            "timings": timings(counts),
        }

    def _settings(self) -> Mapping[str, object]:
        limit = self._asked.max_tokens
        rest = {
            "stop": list(self._asked.stop),
            "max_tokens": limit,
            "n_predict": limit,
            "stream": self._asked.stream,
            "grammar": self._grammar,
        }
        return {**self._generation.sampler.settings, **rest}

    def _prompt(self) -> str:
        """The prompt's tokens spelled out."""
        return b"".join(map(self._resident.tokens.spelling, self._generation.job.prompt)).decode("utf-8", "replace")


class WholeWriter(BufferingWriter):
    """The answer as one object, when it is complete."""

    def __init__(self, answer: Answer, logprobs: Logprobs, reply: Reply) -> None:
        super().__init__(reply)
        self._answer = answer
        self._logprobs = logprobs
        self._tokens: list[int] = []

    def step(self, step: Step) -> None:
        super().step(step)
        if self._answer.return_tokens:
            self._tokens.append(step.token)

    def end(self, last: Step, receipt: Receipt) -> None:
        text = "".join(self._text)
        value = self._answer.final(text, text, self._tokens, last)
        entries = without_stop_word(self._entries, self._answer.stop_word_tokens(last))
        if entries:
            value["completion_probabilities"] = self._logprobs.array(entries)
        value[RECEIPT_KEY] = receipt()
        self._reply.whole(200, json_bytes(value))


class StreamWriter:
    """The answer as server-sent events: one for every Step that released text or has an entry, with the tokens since
    the event before; then the receipt; then the object with `stop: true`, which ends such a stream in place of [DONE].

    The receipt's event is shaped like one without text, so that a client which joins every `content` can pass over it.
    """

    def __init__(self, answer: Answer, logprobs: Logprobs, reply: Reply) -> None:
        self._answer = answer
        self._logprobs = logprobs
        self._reply = reply
        self._text: list[str] = []
        self._tokens: list[int] = []
        self._started = False

    def begin(self, prefill: str) -> None:
        """There is none: the prompt is not part of the answer."""

    def step(self, step: Step) -> None:
        if not self._started:
            self._started = True
            self._reply.start(200, EVENT_STREAM)
        self._text.append(step.text)
        self._tokens.append(step.token)
        if step.text or step.entry is not None or step.finish is not None:
            value: Json = {
                "index": 0,
                "content": step.text,
                "tokens": self._tokens,
                "stop": False,
                "id_slot": 0,
                "tokens_predicted": step.progress.completion_tokens,
                "tokens_evaluated": step.progress.prompt_tokens,
            }
            if step.entry is not None:
                value["completion_probabilities"] = self._logprobs.array([step.entry])
            self._send(sse_event(value))
            self._tokens = []

    def end(self, last: Step, receipt: Receipt) -> None:
        self._send(sse_event({"content": "", "stop": False, RECEIPT_KEY: receipt()}))
        self._send(sse_event(self._answer.final("".join(self._text), "", [], last)))
        self._reply.finish()

    def _send(self, data: bytes) -> None:
        if not self._reply.write(data):
            raise Cancelled
