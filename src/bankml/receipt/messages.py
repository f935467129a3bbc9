"""The messages of a chat response in one canonical form, whether they were sent in one object or as deltas.

`response_sha256` covers the text. What else clients read of a message (`tool_calls`, `reasoning_content`, `refusal`, no
content at all, several choices) is covered by `message_sha256`: the sha256 of this JSON, keys sorted, no white space,
nothing escaped that JSON does not require, in UTF-8:

    [{"content": TEXT or null, "finish_reason": TEXT or null, "index": N, "reasoning_content": TEXT or null,
      "refusal": TEXT or null, "role": TEXT,
      "tool_calls": [{"function": {"arguments": TEXT, "name": TEXT}, "id": TEXT, "type": TEXT}, …]}, …]

one object a choice, by index; the text of a choice of `/v1/completions`, or of an answer of `/completion`, is its
`content`. A message of Ollama's API is in the form of OpenAI's: `thinking` is its
`reasoning_content`, and the arguments of a call are its object as compact JSON. A plain response has no such field: one
choice of index 0 with text or nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from bankml.receipt.receipt import sha256_hex
from bankml.receipt.translation import Translation, compact_json

TEXTS = ("content", "reasoning_content", "refusal")
"""The members of a message that are text; the parts of deltas are joined."""

ROLE = "assistant"


@dataclass
class _ToolCall:
    """A call; deltas give the identifiers once and the arguments in parts."""

    id: str = ""
    type: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def add(self, found: Mapping[str, object]) -> None:
        function = found.get("function", {})
        if not isinstance(function, dict):
            raise ValueError("the function of a tool call is not an object")
        _only(found, ("index", "id", "type", "function"), "a tool call")
        _only(function, ("name", "arguments"), "the function of a tool call")
        self.id += _text(found, "id")
        self.type = _text(found, "type") or self.type
        self.name += _text(function, "name")
        self.arguments.append(_text(function, "arguments"))

    def canonical(self) -> dict[str, object]:
        function = {"arguments": "".join(self.arguments), "name": self.name}
        return {"function": function, "id": self.id, "type": self.type or "function"}


@dataclass
class _Message:
    """A choice's message as far as it was received; `texts` are the parts of each text that is not null."""

    role: str = ROLE
    finish_reason: str | None = None
    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[int, _ToolCall] = field(default_factory=dict)

    def add(self, part: Mapping[str, object]) -> None:
        for name, value in part.items():
            if value is None:
                continue
            if name in TEXTS:
                self.texts.setdefault(name, []).append(_text(part, name))
            elif name == "role":
                self.role = _text(part, name) or self.role
            elif name == "tool_calls":
                self._add_calls(value)
            else:
                raise ValueError(f"a message has {json.dumps(name)[:80]}, which no receipt covers")

    def _add_calls(self, calls: object) -> None:
        if not isinstance(calls, list):
            raise ValueError("tool_calls is not a list")
        for position, call in enumerate(calls):
            if not isinstance(call, dict):
                raise ValueError("a tool call is not an object")
            self.calls.setdefault(_index(call, position), _ToolCall()).add(call)

    @property
    def plain(self) -> bool:
        return self.role == ROLE and not self.calls and set(self.texts) <= {"content"}

    def canonical(self, index: int) -> dict[str, object]:
        calls = [self.calls[number].canonical() for number in sorted(self.calls)]
        texts = {name: "".join(self.texts[name]) if name in self.texts else None for name in TEXTS}
        return {
            "index": index, "role": self.role, **texts, "tool_calls": calls, "finish_reason": self.finish_reason
        }  # fmt: skip


class ChatMessages:
    """The messages of one response. `add` is called for each object of it, in order."""

    def __init__(self) -> None:
        self._choices: dict[int, _Message] = {}
        self._translation = Translation()

    def add(self, found: Mapping[str, object]) -> None:
        """Adds the choices of a response (`message`) or an event (`delta`); other objects have none. Raises ValueError,
        with a sentence, for what no receipt covers."""
        found = self._translation.of(found)
        if "done" in found:
            self._add_ollama(found)
        elif "stop" in found and "choices" not in found and "index" in found:
            self._add_text(found, 0)
        choices = found.get("choices")
        for position, choice in enumerate(choices if isinstance(choices, list) else []):
            if not isinstance(choice, dict):
                continue
            if not ("message" in choice or "delta" in choice):
                self._add_text(choice, position)
                continue
            index = _index(choice, position)
            if "message" in choice and index in self._choices:
                raise ValueError(f"two choices have the index {index}")
            message = self._choices.setdefault(index, _Message())
            part = choice.get("message" if "message" in choice else "delta")
            if not isinstance(part, dict):
                raise ValueError("a message is not an object")
            message.add(part)
            message.finish_reason = _text(choice, "finish_reason") or message.finish_reason

    def _add_text(self, choice: Mapping[str, object], position: int) -> None:
        """A choice of `/v1/completions`, or an answer of `/completion`: its text is the content of a message."""
        message = self._choices.setdefault(_index(choice, position), _Message())
        message.add({"content": choice.get("text", choice.get("content"))})
        message.finish_reason = _text(choice, "finish_reason") or message.finish_reason

    def _add_ollama(self, found: Mapping[str, object]) -> None:
        """An object of `/api/chat`, or of `/api/generate`, whose response is the content of its one message."""
        part = found.get("message", found)
        if not isinstance(part, Mapping):
            raise ValueError("a message is not an object")
        if part is found:
            part = {"content": found.get("response"), "thinking": found.get("thinking")}
        message = self._choices.setdefault(0, _Message())
        message.add(_openai_message(part))
        message.finish_reason = _text(found, "done_reason") or message.finish_reason

    @property
    def finish_reason(self) -> str | None:
        """That of the choice of the lowest index; None where there is none."""
        return self._choices[min(self._choices)].finish_reason if self._choices else None

    def sha256(self) -> str | None:
        """Of the canonical form, 64 hex digits; None for a plain response and for one without messages. Raises
        ValueError for text that UTF-8 cannot encode."""
        if not self._choices or (list(self._choices) == [0] and self._choices[0].plain):
            return None
        canonical = [self._choices[index].canonical(index) for index in sorted(self._choices)]
        text = json.dumps(canonical, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return sha256_hex(text.encode("utf-8"))


def _openai_message(part: Mapping[str, object]) -> Mapping[str, object]:
    """A message of Ollama's API as OpenAI's: `thinking` is `reasoning_content`, arguments are compact JSON."""
    out = {"reasoning_content" if name == "thinking" else name: value for name, value in part.items()}
    calls = out.get("tool_calls")
    out["tool_calls"] = [_openai_call(call) for call in calls] if isinstance(calls, list) else calls
    return out


def _openai_call(call: object) -> object:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        return call
    arguments = compact_json(function.get("arguments", {}))
    inner = {name: value for name, value in function.items() if name != "index"} | {"arguments": arguments}
    return {**call, "function": inner} | ({"index": function["index"]} if "index" in function else {})


def _only(found: Mapping[str, object], known: tuple[str, ...], what: str) -> None:
    for name, value in found.items():
        if name not in known and value is not None:
            raise ValueError(f"{what} has {json.dumps(name)[:80]}, which no receipt covers")


def _text(found: Mapping[str, object], name: str) -> str:
    value = found.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return value


def _index(found: Mapping[str, object], position: int) -> int:
    value = found.get("index", position)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("an index is not a number from 0")
    return value
