"""OpenAI's chat completions as llama-server writes them, with a receipt."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bankml import __version__
from bankml.api.formats.completion import CompletionFormat
from bankml.api.formats.counts import prompt_progress, timings, usage
from bankml.api.formats.response import Answer, Chunk, Json, ResponseContext, StreamRules, WithReceipt
from bankml.api.generation import random_id
from bankml.engine.completion import PromptProgress
from bankml.http.exchange import EVENT_STREAM
from bankml.http.json_out import DONE
from bankml.text.answer import Content, Delta, Reasoning, ToolCall

FINGERPRINT = f"bankml-{__version__}"


def completion_id() -> str:
    return "chatcmpl-" + random_id()


@dataclass(frozen=True)
class CompletionObject:
    """What every object of one OpenAI response has in common."""

    model: str
    id: str = field(default_factory=completion_id)
    created: int = field(default_factory=lambda: int(time.time()))

    def with_choices(self, choices: list[Json], kind: str) -> Json:
        return {
            "choices": choices,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
            "object": kind,
            "id": self.id,
        }


class ChatFormat:
    """`/v1/chat/completions`.

    A stream's first chunk has the role. Its last chunk with a choice has the finish reason and the receipt, since
    clients expect every chunk to have a choice. Timings are in that chunk, or with `stream_options.include_usage`
    beside the usage in a chunk without choices after it, as in llama-server.
    """

    content_type = EVENT_STREAM
    rules = StreamRules(role_first=True, released_entries_only=True, entries_alone=False)
    terminator = DONE

    def __init__(self, context: ResponseContext, shared: CompletionObject | None = None) -> None:
        self._object = shared or CompletionObject(context.model)
        self._options = context.request.response
        self._context = context

    @property
    def id(self) -> str:
        return self._object.id

    def chunk(self, chunk: Chunk) -> Sequence[Json]:
        role: Json = {"role": "assistant", "content": None}
        choice = _choice(role if chunk.delta is None else delta_object(chunk.delta), None, self._context.index)
        if chunk.logprobs:
            choice["logprobs"] = {"content": chunk.logprobs}
        value = self._chunk([choice])
        return (value | {"timings": timings(chunk.stats)} if self._options.timings_per_token else value,)

    def progress(self, progress: PromptProgress, seconds: float) -> Sequence[Json]:
        return (
            self._chunk([_choice({}, None, self._context.index)])
            | {"prompt_progress": prompt_progress(progress, seconds)},
        )

    def final(self, answer: Answer, receipt: WithReceipt) -> Sequence[Json]:
        last = self._chunk([_choice({}, finish_reason(answer), self._context.index)])
        counts = {"timings": timings(answer.stats)} | self._verbose(answer)
        if self._options.include_usage:
            return receipt(last), self._chunk([]) | {"usage": usage(answer.stats)} | counts
        return (receipt(last | counts),)

    def buffered(self, answer: Answer, receipt: WithReceipt) -> Json:
        message: Json = {"role": "assistant", "content": answer.content}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = [_call(call) for call in answer.calls]
        choice: Json = {"finish_reason": finish_reason(answer), "index": self._context.index, "message": message}
        if answer.logprobs:
            choice["logprobs"] = {"content": answer.logprobs}
        value = self._object.with_choices([choice], "chat.completion")
        counts = {"usage": usage(answer.stats), "timings": timings(answer.stats)}
        return receipt(value | counts | self._verbose(answer))

    def beside(self, context: ResponseContext) -> "ChatFormat":
        return ChatFormat(context, self._object)

    def together(self, values: Sequence[Json]) -> Json:
        return with_all_choices(values)

    def _verbose(self, answer: Answer) -> Json:
        """llama-server's `__verbose`: the answer as `/completion` would give it."""
        if not self._options.verbose:
            return {}
        return {"__verbose": CompletionFormat(self._context).summary(answer, answer.content, answer.tokens)}

    def _chunk(self, choices: list[Json]) -> Json:
        return self._object.with_choices(choices, "chat.completion.chunk")


def with_all_choices(values: Sequence[Json]) -> Json:
    """The first object with the choices of all: counts and times are those of the first, as in llama-server."""
    return values[0] | {"choices": [choice for value in values for choice in value["choices"]]}


def finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.finish == "stop" and answer.calls else answer.finish


def delta_object(delta: Delta) -> Json:
    """A delta as llama-server writes it: the first of a call has its id, type and name."""
    if isinstance(delta, Content):
        return {"content": delta.text}
    if isinstance(delta, Reasoning):
        return {"reasoning_content": delta.text}
    call: Json = {"index": delta.index}
    if delta.id:
        call |= {"id": delta.id, "type": "function"}
    function = {"name": delta.name} if delta.name else {}
    if delta.arguments:
        function["arguments"] = delta.arguments
    return {"tool_calls": [call | ({"function": function} if function else {})]}


def _call(call: ToolCall) -> Json:
    return {"type": "function", "function": {"name": call.name, "arguments": call.arguments}, "id": call.id}


def _choice(delta: Json, finish: str | None, index: int) -> Json:
    return {"finish_reason": finish, "index": index, "delta": delta}
