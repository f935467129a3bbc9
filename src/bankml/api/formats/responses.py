"""OpenAI's Responses API as llama-server writes it, with a receipt."""

import time
from collections.abc import Sequence

from bankml.api.formats.counts import prompt_progress, timings
from bankml.api.formats.response import Answer, Chunk, Json, ResponseContext, StreamRules, WithReceipt
from bankml.api.generation import random_id
from bankml.engine.completion import GenerationStats, PromptProgress
from bankml.http.exchange import EVENT_STREAM
from bankml.text.answer import Content, Reasoning, ToolCall


class ResponsesFormat:
    """`/v1/responses`: an item of reasoning, a message and function calls, whichever there are.

    A stream repeats each complete item at its end, and its last event, `response.completed`, has the receipt.
    """

    content_type = EVENT_STREAM
    rules = StreamRules(role_first=True, released_entries_only=True, entries_alone=False, named_events=True)
    terminator = b""

    def __init__(self, context: ResponseContext) -> None:
        self._model = context.model
        self._timings = context.request.response.timings_per_token
        self.id, self._reasoning_id, self._message_id = (f"{kind}_{random_id()}" for kind in ("resp", "rs", "msg"))
        self._began = False
        self._reasons = self._speaks = False
        self._call_id = ""

    def chunk(self, chunk: Chunk) -> Sequence[Json]:
        events = [*self._created(), *self._delta(chunk)]
        if self._timings and events:
            events[-1] |= {"timings": timings(chunk.stats)}
        return events

    def progress(self, progress: PromptProgress, seconds: float) -> Sequence[Json]:
        *before, last = self._created() or [self._in_progress("response.in_progress")]
        return *before, last | {"prompt_progress": prompt_progress(progress, seconds)}

    def final(self, answer: Answer, receipt: WithReceipt) -> Sequence[Json]:
        output = self._output(answer, streamed=True)
        events: list[Json] = []
        for item in output:
            if item["type"] == "message":
                (part,) = item["content"]
                where = {"item_id": self._message_id}
                events.append({"type": "response.output_text.done", **where, "text": part["text"]})
                events.append({"type": "response.content_part.done", **where, "part": part})
            events.append({"type": "response.output_item.done", "item": item})
        completed = {"type": "response.completed", "response": self._response(answer, output)}
        return *events, receipt(completed | {"timings": timings(answer.stats)})

    def buffered(self, answer: Answer, receipt: WithReceipt) -> Json:
        value = self._response(answer, self._output(answer, streamed=False))
        return receipt(value | {"completed_at": value["created_at"], "timings": timings(answer.stats)})

    def _created(self) -> list[Json]:
        """The events that begin a stream, once."""
        if self._began:
            return []
        self._began = True
        return [self._in_progress("response.created"), self._in_progress("response.in_progress")]

    def _in_progress(self, kind: str) -> Json:
        return {"type": kind, "response": {"id": self.id, "object": "response", "status": "in_progress"}}

    def _delta(self, chunk: Chunk) -> list[Json]:
        delta = chunk.delta
        if isinstance(delta, Reasoning):
            begun, self._reasons = self._reasons, True
            item = {**_reasoning_item(self._reasoning_id, []), "status": "in_progress"}
            added = [] if begun else [_added(item)]
            return [*added, _changed("response.reasoning_text.delta", self._reasoning_id, delta.text)]
        if isinstance(delta, ToolCall):
            return self._call(delta)
        if isinstance(delta, Content) and delta.text:
            begun, self._speaks = self._speaks, True
            return [
                *([] if begun else self._message_added()),
                _changed("response.output_text.delta", self._message_id, delta.text),
            ]
        return []

    def _message_added(self) -> list[Json]:
        item = {"content": [], "id": self._message_id, "role": "assistant", "status": "in_progress", "type": "message"}
        part = {"type": "output_text", "text": ""}
        return [_added(item), {"type": "response.content_part.added", "item_id": self._message_id, "part": part}]

    def _call(self, call: ToolCall) -> list[Json]:
        events = []
        if call.name:
            self._call_id = call.id
            events.append(_added(_call_item(call.id, call.name, "", "in_progress")))
        if call.arguments:
            kind = "response.function_call_arguments.delta"
            events.append(_changed(kind, f"fc_{self._call_id}", call.arguments))
        return events

    def _output(self, answer: Answer, streamed: bool) -> list[Json]:
        """The items of the answer. One of reasoning has no status in a stream, as there."""
        items: list[Json] = []
        if answer.reasoning:
            item = _reasoning_item(self._reasoning_id, [{"text": answer.reasoning, "type": "reasoning_text"}])
            items.append(item if streamed else item | {"status": "completed"})
        if answer.content:
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.content}
            message = {"content": [part], "id": self._message_id, "role": "assistant"}
            items.append({**message, "status": "completed", "type": "message"})
        return items + [_call_item(call.id, call.name, call.arguments, "completed") for call in answer.calls]

    def _response(self, answer: Answer, output: list[Json]) -> Json:
        return {
            "created_at": int(time.time()),
            "id": self.id,
            "model": self._model,
            "object": "response",
            "output": output,
            "status": "completed",
            "usage": _usage(answer.stats),
        }


def _added(item: Json) -> Json:
    return {"type": "response.output_item.added", "item": item}


def _changed(kind: str, item: str, delta: str) -> Json:
    return {"type": kind, "delta": delta, "item_id": item}


def _reasoning_item(id_: str, content: list[Json]) -> Json:
    return {"id": id_, "summary": [], "type": "reasoning", "content": content, "encrypted_content": ""}


def _call_item(id_: str, name: str, arguments: str, status: str) -> Json:
    ids = {"id": f"fc_{id_}", "call_id": f"call_{id_}"}
    return {**ids, "type": "function_call", "status": status, "arguments": arguments, "name": name}


def _usage(stats: GenerationStats) -> Json:
    return {
        "input_tokens": stats.prompt_tokens,
        "output_tokens": stats.completion_tokens,
        "total_tokens": stats.prompt_tokens + stats.completion_tokens,
        "input_tokens_details": {"cached_tokens": stats.cached_tokens},
    }
