"""Anthropic's Messages API as llama-server writes it, with a receipt."""

import json
from collections.abc import Sequence

from bankml.api.formats.response import Answer, Chunk, Json, ResponseContext, StreamRules, WithReceipt
from bankml.api.generation import random_id
from bankml.engine.completion import GenerationStats, PromptProgress
from bankml.http.exchange import EVENT_STREAM
from bankml.text.answer import Content, Reasoning, ToolCall


class MessagesFormat:
    """`/v1/messages`: blocks of thinking, text and tool use, whichever there are.

    A stream ends its blocks together, as llama-server's does; its `message_delta` has the receipt.
    """

    content_type = EVENT_STREAM
    rules = StreamRules(role_first=True, released_entries_only=True, entries_alone=False, named_events=True)
    terminator = b""

    def __init__(self, context: ResponseContext) -> None:
        self._model = context.model
        self._pieces = context.generation.pieces
        self.id = f"msg_{random_id()}"
        self._blocks: list[str] = []  # the kind of each block that has begun

    def chunk(self, chunk: Chunk) -> Sequence[Json]:
        delta = chunk.delta
        if delta is None:
            return ({"type": "message_start", "message": self._message([], None, _usage(chunk.stats, 0))},)
        if isinstance(delta, Reasoning):
            started = self._started("thinking", {"type": "thinking", "thinking": ""})
            return *started, self._delta("thinking", {"type": "thinking_delta", "thinking": delta.text})
        if isinstance(delta, Content):
            if not delta.text:
                return ()
            started = self._started("text", {"type": "text", "text": ""})
            return *started, self._delta("text", {"type": "text_delta", "text": delta.text})
        return self._call(delta)

    def progress(self, progress: PromptProgress, seconds: float) -> Sequence[Json]:
        """The API has no event for it; pings keep the connection open."""
        return ()

    def final(self, answer: Answer, receipt: WithReceipt) -> Sequence[Json]:
        events = []
        for index, kind in enumerate(self._blocks):
            if kind == "thinking":  # no signature: its end is announced by an empty one
                events.append(self._delta(kind, {"type": "signature_delta", "signature": ""}))
            events.append({"type": "content_block_stop", "index": index})
        ended = {"type": "message_delta", "delta": self._ended(answer)}
        ended |= {"usage": {"output_tokens": answer.stats.completion_tokens}}
        return *events, receipt(ended), {"type": "message_stop"}

    def buffered(self, answer: Answer, receipt: WithReceipt) -> Json:
        blocks: list[Json] = []
        if answer.reasoning:
            blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": ""})
        if answer.content:
            blocks.append({"type": "text", "text": answer.content})
        blocks += [_tool_use(call) | {"input": _input(call)} for call in answer.calls]
        usage = _usage(answer.stats, answer.stats.completion_tokens)
        return receipt(self._message(blocks, answer, usage))

    def _call(self, call: ToolCall) -> Sequence[Json]:
        kind = f"tool_use {call.index}"
        started = self._started(kind, _tool_use(call)) if call.name else []
        if not call.arguments:
            return started
        return *started, self._delta(kind, {"type": "input_json_delta", "partial_json": call.arguments})

    def _started(self, kind: str, block: Json) -> list[Json]:
        if kind in self._blocks:
            return []
        self._blocks.append(kind)
        return [{"type": "content_block_start", "index": len(self._blocks) - 1, "content_block": block}]

    def _delta(self, kind: str, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": self._blocks.index(kind), "delta": delta}

    def _message(self, blocks: list[Json], answer: Answer | None, usage: Json) -> Json:
        ended = {"stop_reason": None, "stop_sequence": None} if answer is None else self._ended(answer)
        head = {"id": self.id, "type": "message", "role": "assistant", "content": blocks, "model": self._model}
        return {**head, **ended, "usage": usage}

    def _ended(self, answer: Answer) -> Json:
        """A stop string ends a message with `stop_sequence`, as in Anthropic's API."""
        word = self._pieces.stop_word
        if answer.finish != "stop":
            reason = "max_tokens"
        elif answer.calls:
            reason = "tool_use"
        else:
            reason = "end_turn" if word is None else "stop_sequence"
        return {"stop_reason": reason, "stop_sequence": word}


def _tool_use(call: ToolCall) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _input(call: ToolCall) -> object:
    """The arguments as JSON; {} for those that a limit cut off."""
    try:
        return json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}


def _usage(stats: GenerationStats, output: int) -> Json:
    computed = stats.prompt_tokens - stats.cached_tokens
    return {"cache_read_input_tokens": stats.cached_tokens, "input_tokens": computed, "output_tokens": output}
