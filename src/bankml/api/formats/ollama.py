"""Answers of `/api/chat` and `/api/generate` as Ollama writes them, with a receipt."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bankml.api.formats.response import Answer, Chunk, Json, StreamRules, WithReceipt
from bankml.api.ollama.durations import moment, nanoseconds_of
from bankml.engine.completion import PromptProgress
from bankml.http.exchange import NDJSON
from bankml.text.answer import Delta, Reasoning, ToolCall, text_of

MessageField = Callable[[str, str, Sequence[ToolCall]], Json]
"""Puts content, reasoning and tool calls, or a part of them, into an object."""


def message(text: str, thinking: str = "", calls: Sequence[ToolCall] = ()) -> Json:
    """The answer of `/api/chat`."""
    value: Json = {"role": "assistant", "content": text}
    if thinking:
        value["thinking"] = thinking
    if calls:
        value["tool_calls"] = [_call(call) for call in calls]
    return {"message": value}


def response(text: str, thinking: str = "", calls: Sequence[ToolCall] = ()) -> Json:
    """The answer of `/api/generate`, which has no tools."""
    return {"response": text} | ({"thinking": thinking} if thinking else {})


def _call(call: ToolCall) -> Json:
    arguments = json.loads(call.arguments)
    return {"id": call.id, "function": {"index": call.index, "name": call.name, "arguments": arguments}}


@dataclass(frozen=True)
class OllamaFormat:
    """`model` is the name in the request, `arrived` the `time.monotonic()` of the request's first byte, `loading` the
    seconds that loading the model took. `left_out` messages of the conversation did not fit the context; `served_ctx`
    is this server's context in tokens where the request asked for more.

    Which tokens have an entry is as on `/v1/chat/completions`: the first, and those that released text.
    """

    model: str
    message_field: MessageField
    arrived: float
    loading: float = 0.0
    left_out: int = 0
    served_ctx: int | None = None

    id = ""
    content_type = NDJSON
    rules = StreamRules(released_entries_only=True)
    terminator = b""

    def chunk(self, chunk: Chunk) -> Sequence[Json]:
        """The object of one delta."""
        value = {**self._head(*_of_delta(chunk.delta)), "done": False}
        return (value | ({"logprobs": chunk.logprobs} if chunk.logprobs else {}),)

    def progress(self, progress: PromptProgress, seconds: float) -> Sequence[Json]:
        """Ollama's API has no request for it."""
        return ({**self._head(""), "done": False},)

    def final(self, answer: Answer, receipt: WithReceipt) -> Sequence[Json]:
        return (self._final(answer, receipt),)

    def buffered(self, answer: Answer, receipt: WithReceipt) -> Json:
        return self._final(answer, receipt, answer.content, answer.reasoning, answer.calls)

    def without_answer(self, reason: str) -> Json:
        """The one object of a response for which nothing was computed: the model was loaded or unloaded."""
        return {**self._head(""), "done": True, "done_reason": reason, **self._durations()}

    def _final(
        self, answer: Answer, receipt: WithReceipt, text: str = "", thinking: str = "", calls: Sequence[ToolCall] = ()
    ) -> Json:
        """`prompt_eval_count` is the count of the prompt's tokens, of which `bankml_cache_n` were cache hits."""
        stats = answer.stats
        value = {
            **self._head(text, thinking, calls),
            "done": True,
            "done_reason": answer.finish,
            **self._durations(),
            "prompt_eval_count": stats.prompt_tokens,
            "prompt_eval_duration": nanoseconds_of(stats.prompt_ms / 1000),
            "eval_count": stats.completion_tokens,
            "eval_duration": nanoseconds_of(stats.predicted_ms / 1000),
            **({"logprobs": answer.logprobs} if answer.logprobs else {}),
            "bankml_cache_n": stats.cached_tokens,
            **({"bankml_messages_left_out": self.left_out} if self.left_out else {}),
            **({} if self.served_ctx is None else {"bankml_num_ctx": self.served_ctx}),
        }
        return receipt(value)

    def _head(self, text: str, thinking: str = "", calls: Sequence[ToolCall] = ()) -> Json:
        return {"model": self.model, "created_at": moment(time.time_ns()), **self.message_field(text, thinking, calls)}

    def _durations(self) -> Json:
        total = time.monotonic() - self.arrived
        return {"total_duration": nanoseconds_of(total), "load_duration": nanoseconds_of(self.loading)}


def _of_delta(delta: Delta | None) -> tuple[str, str, Sequence[ToolCall]]:
    if isinstance(delta, Reasoning):
        return "", delta.text, ()
    return ("", "", (delta,)) if isinstance(delta, ToolCall) else (text_of(delta), "", ())


def entry_with(n_alternatives: int) -> Callable[[Json], Json]:
    """Makes Ollama's logprobs entry of llama-server's: without `id`, and with at most `n_alternatives` alternatives."""

    def shaped(entry: Json) -> Json:
        tops = [_without_id(top) for top in entry["top_logprobs"][:n_alternatives]]
        rest = {name: value for name, value in _without_id(entry).items() if name != "top_logprobs"}
        return rest | ({"top_logprobs": tops} if tops else {})

    return shaped


def _without_id(entry: Json) -> Json:
    return {name: value for name, value in entry.items() if name != "id"}
