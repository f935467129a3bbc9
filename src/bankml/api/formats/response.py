"""One response shell for every API: a format turns an answer's deltas into JSON, the shell decides when and sends it.

format            buffered                 streamed
chat              one object               server-sent events, [DONE]
text_completion   one object               server-sent events, [DONE]
completion        one object               server-sent events, the last with `stop: true`
ollama            one object               lines of JSON, the last with `done: true`
responses         one object               named server-sent events
anthropic         one object               named server-sent events
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from bankml.api.echo import Echo
from bankml.api.formats.ending import stop_word_tokens
from bankml.api.formats.logprobs import Logprobs, without_stop_word
from bankml.api.generation import Generation
from bankml.engine.completion import Finish, GenerationStats, PromptProgress, Step, TokenReport
from bankml.errors import Cancelled
from bankml.http.exchange import NDJSON, Headers, Reply
from bankml.http.json_out import json_bytes, ndjson_line, sse_event
from bankml.library.request import GenerationRequest
from bankml.library.resident import Resident
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.messages import ChatMessages
from bankml.text.answer import Content, Delta, MessageText, ToolCall

Json = dict[str, Any]

WithReceipt = Callable[[Json], Json]
"""The last object of a response with its receipt, which covers every object before and that one."""

Receipt = Callable[[ChatMessages], Mapping[str, object]]
"""Makes the receipt of a response that has these messages and whose text has all been written."""


@dataclass(frozen=True)
class ResponseContext:
    """What the response to one request is about. `model` is the name of the model that answers, `loading` the seconds
    that loading it took, `arrived` the `time.monotonic()` of the request's first byte, `index` the number of this
    answer among those of the response."""

    model: str
    request: GenerationRequest
    resident: Resident
    generation: Generation
    loading: float
    arrived: float
    index: int = 0


@dataclass(frozen=True)
class Chunk:
    """One object of a stream. `delta` None announces the assistant's role. `tokens` are the ids since the chunk before,
    `logprobs` the entries of this chunk."""

    delta: Delta | None
    logprobs: list[Json]
    tokens: list[int]
    stats: GenerationStats


@dataclass(frozen=True)
class Answer:
    """A complete answer. `tokens` are its ids, `logprobs` its entries (none in a stream, which has sent them)."""

    content: str
    reasoning: str
    calls: Sequence[ToolCall]
    tokens: list[int]
    logprobs: list[Json]
    stats: GenerationStats
    finish: Finish
    last: Step


@dataclass(frozen=True)
class StreamRules:
    """Which steps of a generation a stream has a chunk for, besides those with content.

    `role_first`: a chunk with the role precedes the first one. `released_entries_only`: an entry is sent for the first
    token and for tokens that released text, as in llama-server's chat; else for every token. `entries_alone`: an entry
    without content makes a chunk. `last_step`: the last step always has a chunk. `named_events`: each event has the
    name that its object has as `type`.
    """

    role_first: bool = False
    released_entries_only: bool = False
    entries_alone: bool = True
    last_step: bool = False
    named_events: bool = False


class ResponseFormat(Protocol):
    """How one API writes an answer."""

    @property
    def id(self) -> str:
        """By which clients know the answer, "" where its API has no such thing."""

    @property
    def content_type(self) -> str:
        """Of a stream: server-sent events or NDJSON."""

    @property
    def rules(self) -> StreamRules: ...

    @property
    def terminator(self) -> bytes:
        """What follows the last object of a stream."""

    def chunk(self, chunk: Chunk) -> Sequence[Json]:
        """Objects of a stream before the last."""

    def progress(self, progress: PromptProgress, seconds: float) -> Sequence[Json]:
        """Objects of a stream whose prompt is being computed (`return_progress`), for so many seconds already."""

    def final(self, answer: Answer, receipt: WithReceipt) -> Sequence[Json]:
        """The objects that end a stream."""

    def buffered(self, answer: Answer, receipt: WithReceipt) -> Json:
        """The answer as one object."""


@runtime_checkable
class SeveralFormat(ResponseFormat, Protocol):
    """How one API writes several answers in one response."""

    def beside(self, context: ResponseContext) -> "SeveralFormat":
        """The format of another answer of the same response."""

    def together(self, values: Sequence[Json]) -> Json | list[Json]:
        """The response that has the answers' objects."""


class Writer(Protocol):
    """Where the steps of one answer go. `step` and `end` raise Cancelled when the client is gone."""

    def accept(self) -> None:
        """Called once, when the request is accepted: it waits for the model now, or its prompt is computed. A stream
        sends its head."""

    def progress(self, progress: PromptProgress) -> None:
        """A part of the prompt has been computed."""

    def echo(self, echo: Echo) -> None:
        """The prompt, which the text begins with."""

    def step(self, step: Step, deltas: Sequence[Delta]) -> bool:
        """Takes one step and the deltas that it completed. False: no further step is wanted."""

    def end(self, last: Step, receipt: Receipt) -> None:
        """The answer is complete."""


class BufferedResponse:
    """Writes the answer as one object when it is complete."""

    def __init__(self, context: ResponseContext, form: ResponseFormat, logprobs: Logprobs, reply: Reply) -> None:
        self._context = context
        self._format = form
        self._logprobs = logprobs
        self._reply = reply
        self._message = MessageText()
        self._tokens: list[int] = []
        self._entries: list[TokenReport] = []
        self._echoed: Sequence[TokenReport] = ()

    def accept(self) -> None:
        """Nothing is sent before the end."""

    def progress(self, progress: PromptProgress) -> None:
        """A buffered response has none."""

    def echo(self, echo: Echo) -> None:
        self._message.add((Content(echo.text),))
        self._echoed = echo.reports

    def step(self, step: Step, deltas: Sequence[Delta]) -> bool:
        self._message.add(deltas)
        self._tokens.append(step.token)
        if step.entry is not None:
            self._entries.append(step.entry)
        return True

    def end(self, last: Step, receipt: Receipt) -> None:
        dropped, messages = self._context.generation.not_enforced, ChatMessages()

        def with_receipt(value: Json) -> Json:
            messages.add(value)
            return value | {RECEIPT_KEY: receipt(messages)}

        value = self.value(last, with_receipt) | dropped_keywords(dropped)
        headers = warnings_of(dropped, self._context.request.response.left_out)
        self._reply.whole(200, json_bytes(value), headers=headers)

    def value(self, last: Step, with_receipt: WithReceipt) -> Json:
        """The answer as one object."""
        generation, tokens = self._context.generation, self._context.resident.tokens
        entries = without_stop_word(self._entries, stop_word_tokens(last, generation.pieces, tokens))
        logprobs = self._logprobs.array([*self._echoed, *entries])
        return self._format.buffered(_answer(self._message, self._tokens, logprobs, last), with_receipt)

    @property
    def content(self) -> str:
        """The answer's text so far."""
        return self._message.content


class StreamedResponse:
    """Writes the answer as a stream of objects as it is generated. `messages` gathers what a receipt covers: that of
    several answers where a stream has several."""

    def __init__(
        self,
        context: ResponseContext,
        form: ResponseFormat,
        logprobs: Logprobs,
        reply: Reply,
        messages: ChatMessages | None = None,
    ) -> None:
        self._format = form
        self._logprobs = logprobs
        self._reply = reply
        self._options = context.request.response
        self._dropped = context.generation.not_enforced
        self._began = 0.0  # when computing the prompt began, time.monotonic()
        self._started = False
        self._message = MessageText()
        self._messages = ChatMessages() if messages is None else messages
        self._tokens: list[int] = []
        self._unsent: list[int] = []

    def accept(self) -> None:
        headers = warnings_of(self._dropped, self._options.left_out)
        self._reply.start(200, self._format.content_type, self._options.ping_interval, headers)

    def progress(self, progress: PromptProgress) -> None:
        if self._options.return_progress:
            self._began = self._began or time.monotonic()
            self._send(*self._format.progress(progress, time.monotonic() - self._began))

    def echo(self, echo: Echo) -> None:
        delta = Content(echo.text)
        self._message.add((delta,))
        none_yet = GenerationStats(0, 0, 0, 0.0, 0.0, 0.0)
        self._send(*self._format.chunk(Chunk(delta, self._logprobs.array(echo.reports), [], none_yet)))

    def step(self, step: Step, deltas: Sequence[Delta]) -> bool:
        self._message.add(deltas)
        self._tokens.append(step.token)
        self._unsent.append(step.token)
        chunks: list[Delta | None] = [None] if self._format.rules.role_first and not self._started else []
        self._started = True
        entry = self._entry(step)
        chunks += self._content_chunks(step, deltas, entry)
        for i, delta in enumerate(chunks):
            has_entry = entry is not None and i == len(chunks) - 1
            logprobs = self._logprobs.array([entry]) if has_entry and entry is not None else []
            self._send(*self._format.chunk(Chunk(delta, logprobs, self._unsent, step.progress)))
            self._unsent = []
        return True

    def _entry(self, step: Step) -> TokenReport | None:
        entry = step.entry
        if entry is None or not self._format.rules.released_entries_only:
            return entry
        first = step.progress.completion_tokens == 1
        return entry if first or entry.released else None

    def _content_chunks(self, step: Step, deltas: Sequence[Delta], entry: TokenReport | None) -> Sequence[Delta]:
        rules = self._format.rules
        alone = (entry is not None and rules.entries_alone) or (step.finish is not None and rules.last_step)
        return (Content(""),) if alone and not deltas else deltas

    def end(self, last: Step, receipt: Receipt) -> None:
        self.close(last, receipt)
        self.finish()

    def close(self, last: Step, receipt: Receipt | None) -> None:
        """Writes the objects that end the answer; the stream may have others, the last of which has the receipt."""
        answer = _answer(self._message, self._tokens, [], last)

        def with_receipt(value: Json) -> Json:
            self._messages.add(value)
            return value if receipt is None else value | {RECEIPT_KEY: receipt(self._messages)}

        *before, last_value = self._format.final(answer, with_receipt)
        for value in (*before, last_value | dropped_keywords(self._dropped)):
            self._write(value)

    def finish(self) -> None:
        """The stream is complete."""
        if self._format.terminator and not self._reply.write(self._format.terminator):
            raise Cancelled
        self._reply.finish()

    def _send(self, *values: Json) -> None:
        for value in values:
            self._messages.add(value)
            self._write(value)

    def _write(self, value: Json) -> None:
        name = str(value["type"]) if self._format.rules.named_events else ""
        data = ndjson_line(value) if self._format.content_type == NDJSON else sse_event(value, name)
        if not self._reply.write(data):
            raise Cancelled


def dropped_keywords(paths: Sequence[str]) -> Json:
    """What the response says of schema keywords that its grammar does not hold."""
    return {"bankml_not_enforced": list(paths)} if paths else {}


def warnings_of(dropped: Sequence[str], left_out: Sequence[str]) -> Headers:
    """What the answer does not follow: keywords of the schema, fields of the request."""
    texts = [f"{len(dropped)} keywords of the JSON schema are not enforced"] if dropped else []
    texts += [f"not supported and left out: {', '.join(left_out)}"] if left_out else []
    return [("Warning", f'299 bankml "{text}"') for text in texts]


def _answer(message: MessageText, tokens: list[int], logprobs: list[Json], last: Step) -> Answer:
    return Answer(
        message.content,
        message.reasoning,
        message.calls,
        tokens,
        logprobs,
        last.progress,
        last.finish or "stop",
        last,
    )
