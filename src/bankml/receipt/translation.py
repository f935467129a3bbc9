"""Objects of `/v1/responses` and `/v1/messages` as objects of a chat, which receipts are about.

A stream of the Responses API has everything twice: as deltas, and complete at its end. Both must be the same, because
clients read either. Usage is translated too: Anthropic's `input_tokens` leave out the cached ones.
"""

import json
from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]
Json = dict[str, Any]

OTHER_APIS = ("choices", "done", "stop")
"""What objects of the APIs that need no translation have."""

ENDS = ("response.completed", "message_stop")
"""The `type` of the event that ends a stream."""

_DELTAS = {"response.output_text.delta": "content", "response.reasoning_text.delta": "reasoning_content"}
_WITHOUT_TEXT = ("response.created", "response.in_progress", "response.content_part.added", "ping", "message_stop")
_BLOCK_EVENTS = ("content_block_start", "content_block_delta", "content_block_stop")


class Translation:
    """Translates the objects of one response, in their order. `of` raises ValueError, with a sentence, for what it
    cannot read."""

    def __init__(self) -> None:
        self._calls: list[str] = []  # the ids of function-call items, or the indices of tool-use blocks
        self._said = _Said()
        self._prompt = 0

    def of(self, found: Object) -> Object:
        """`found` itself where it is of another API."""
        kind = str(found.get("type") or found.get("object") or "")
        if kind == "response" or kind.startswith("response."):
            read = self._response(kind, found)
        elif kind == "message" or kind.startswith(("message_", "content_block_")) or kind == "ping":
            read = self._message(kind, found)
        else:
            return found
        if mixed := [name for name in OTHER_APIS if name in found]:
            raise ValueError(f"the answer has {' and '.join(mixed)}, which no object of type {kind[:80]} has")
        return {**read, **{name: found[name] for name in ("bankml_receipt", "timings") if name in found}}

    # ---- /v1/responses

    def _response(self, kind: str, found: Object) -> Json:
        if kind == "response":
            return _complete(found)
        if kind == "response.completed":
            complete = _complete(_mapping(found, "response"))
            message = complete["choices"][0]["message"]
            self._said.require(message)
            return {"usage": complete["usage"]}
        if kind in _DELTAS:
            return self._delta({_DELTAS[kind]: _text(found, "delta")})
        if kind == "response.function_call_arguments.delta":
            return self._arguments(_text(found, "item_id"), _text(found, "delta"))
        if kind == "response.output_item.added":
            return self._added(_mapping(found, "item"))
        if kind == "response.output_item.done":
            self._said.complete(_mapping(found, "item"))
        elif kind == "response.output_text.done":
            self._said.require_text(_text(found, "text"))
        elif kind == "response.content_part.done":
            self._said.require_text(_text(_mapping(found, "part"), "text"))
        elif kind not in _WITHOUT_TEXT:
            raise ValueError(f"an event has the type {kind[:80]}, which no receipt covers")
        return {}

    def _added(self, item: Object) -> Json:
        if item.get("type") in ("message", "reasoning"):
            return {}
        if item.get("type") != "function_call":
            raise ValueError("an item of the output is of a type that no receipt covers")
        call = _call_of(item) | {"index": len(self._calls)}
        self._calls.append(_text(item, "id"))
        return self._delta({"tool_calls": [call]})

    def _arguments(self, owner: str, text: str) -> Json:
        if owner not in self._calls:
            raise ValueError("arguments are of no call that has begun")
        return self._delta({"tool_calls": [{"index": self._calls.index(owner), "function": {"arguments": text}}]})

    # ---- /v1/messages

    def _message(self, kind: str, found: Object) -> Json:
        if kind == "message":
            return _complete_message(found)
        if kind == "message_start":
            usage = _mapping(_mapping(found, "message"), "usage")
            self._prompt = _count(usage, "input_tokens") + _count(usage, "cache_read_input_tokens")
            return {}
        if kind == "message_delta":
            choice: Json = {"index": 0, "delta": {}, "finish_reason": _mapping(found, "delta").get("stop_reason")}
            counts = _usage(self._prompt, _count(_mapping(found, "usage"), "output_tokens"))
            return {"choices": [choice], "usage": counts}
        if kind in _BLOCK_EVENTS:
            return self._block(kind, found)
        if kind not in _WITHOUT_TEXT:
            raise ValueError(f"an event has the type {kind[:80]}, which no receipt covers")
        return {}

    def _block(self, kind: str, found: Object) -> Json:
        index = str(found.get("index"))
        if kind == "content_block_start":
            block = _mapping(found, "content_block")
            if block.get("type") != "tool_use":
                return self._delta(_block_texts(block))
            self._calls.append(index)
            return self._delta({"tool_calls": [_tool_use(block, "") | {"index": len(self._calls) - 1}]})
        if kind == "content_block_stop":
            return {}
        delta = _mapping(found, "delta")
        if delta.get("type") == "input_json_delta":
            return self._arguments(index, _text(delta, "partial_json"))
        if delta.get("type") == "signature_delta":
            return {}
        return self._delta(_block_texts(delta))

    def _delta(self, delta: Json) -> Json:
        self._said.add(delta)
        return {"choices": [{"index": 0, "delta": delta}]}


class _Said:
    """What the deltas of a stream have added up to, to be compared with what is repeated at its end."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._calls: list[Json] = []
        self._complete: list[Object] = []

    def add(self, delta: Json) -> None:
        for name in _DELTAS.values():
            self._texts[name] = self._texts.get(name, "") + (delta.get(name) or "")
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(self._calls):
                self._calls.append({**call, "function": dict(call["function"])})
            else:
                self._calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]

    def complete(self, item: Object) -> None:
        self._complete.append(item)

    def require_text(self, text: str) -> None:
        if text != self._texts.get("content", ""):
            raise ValueError("the deltas of the text are not the complete text")

    def require(self, message: Json) -> None:
        """Raises ValueError unless the deltas, and the items that were repeated, are those of the complete message."""
        calls = [{name: value for name, value in call.items() if name != "index"} for call in self._calls]
        for read in (
            {**self._texts, "tool_calls": calls},
            _message_of(self._complete) if self._complete else message,
        ):
            if any(
                (read.get(name) or None) != (message.get(name) or None) for name in (*_DELTAS.values(), "tool_calls")
            ):
                raise ValueError("the deltas of the stream are not the complete response")


def _complete(response: Object) -> Json:
    usage, output = response.get("usage"), response.get("output")
    if not isinstance(output, list) or not all(isinstance(item, Mapping) for item in output):
        raise ValueError("output is not a list of items")
    counts = {} if not isinstance(usage, Mapping) else _usage(usage.get("input_tokens"), usage.get("output_tokens"))
    return {"choices": [{"index": 0, "message": _message_of(output)}], "usage": counts}


def _message_of(items: list[Object]) -> Json:
    message: Json = {"content": ""}
    for item in items:
        kind = item.get("type")
        if kind == "function_call":
            message.setdefault("tool_calls", []).append(_call_of(item))
        elif kind in ("message", "reasoning"):
            name = "content" if kind == "message" else "reasoning_content"
            parts = item.get("content")
            text = "".join(_text(part, "text") for part in parts) if isinstance(parts, list) else ""
            message[name] = message.get(name, "") + text
        else:
            raise ValueError("an item of the output is of a type that no receipt covers")
    return message


def _call_of(item: Object) -> Json:
    function = {"name": _text(item, "name"), "arguments": _text(item, "arguments")}
    return {"id": _text(item, "call_id"), "type": "function", "function": function}


def _complete_message(found: Object) -> Json:
    blocks, usage = found.get("content"), _mapping(found, "usage")
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
        raise ValueError("content is not a list of blocks")
    message: Json = {"content": ""}
    for block in blocks:
        if block.get("type") == "tool_use":
            call = _tool_use(block, compact_json(block.get("input", {})))
            message.setdefault("tool_calls", []).append(call)
            continue
        for name, text in _block_texts(block).items():
            message[name] = message.get(name, "") + text
    prompt = _count(usage, "input_tokens") + _count(usage, "cache_read_input_tokens")
    choice = {"index": 0, "message": message, "finish_reason": found.get("stop_reason")}
    return {"choices": [choice], "usage": _usage(prompt, _count(usage, "output_tokens"))}


def _block_texts(block: Object) -> Json:
    kind = str(block.get("type"))
    if kind in ("text", "text_delta"):
        return {"content": _text(block, "text")}
    if kind in ("thinking", "thinking_delta"):
        return {"reasoning_content": _text(block, "thinking")}
    raise ValueError(f"a block is of type {kind[:80]}, which no receipt covers")


def _tool_use(block: Object, arguments: str) -> Json:
    function = {"name": _text(block, "name"), "arguments": arguments}
    return {"id": _text(block, "id"), "type": "function", "function": function}


def _usage(prompt: object, completion: object) -> Json:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _count(usage: Object, name: str) -> int:
    value = usage.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is not a number of tokens")
    return value


def _mapping(found: Object, name: str) -> Object:
    value = found.get(name)
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} of an event is not an object")
    return value


def _text(found: Object, name: str) -> str:
    value = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return value
