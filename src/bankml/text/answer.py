"""An answer's text, parsed into the deltas that clients receive."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Content:
    """A piece of the answer's content."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the answer's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a function, or what an answer adds to one: the first delta of an `index` has `id` and `name`, later
    ones have "" there. `arguments` is a piece of a JSON object's text."""

    index: int
    id: str
    name: str
    arguments: str


Delta = Content | Reasoning | ToolCall
"""One increment of an answer."""


class AnswerParser(Protocol):
    """Reads one answer's text as it is generated."""

    def push(self, text: str, last: bool) -> Sequence[Delta]:
        """The deltas that `text` completes; `last`: it is the end of the answer."""


class PlainAnswer:
    """All of the text is content."""

    def push(self, text: str, last: bool) -> Sequence[Delta]:
        return (Content(text),) if text else ()


class WholeCalls:
    """Another parser's deltas, with each call as one delta when it is complete, its arguments as compact JSON; "{}" for
    those of a call that the answer's end has cut."""

    def __init__(self, parser: AnswerParser) -> None:
        self._parser = parser
        self._call: ToolCall | None = None
        self._arguments: list[str] = []

    def push(self, text: str, last: bool) -> Sequence[Delta]:
        out: list[Delta] = []
        for delta in self._parser.push(text, last):
            if not isinstance(delta, ToolCall):
                out.append(delta)
                continue
            if self._call is None or delta.index != self._call.index:
                out += self._complete()
                self._call, self._arguments = delta, []
            self._arguments.append(delta.arguments)
        return [*out, *self._complete()] if last else out

    def _complete(self) -> Sequence[ToolCall]:
        if self._call is None:
            return ()
        try:
            value = json.loads("".join(self._arguments))
        except (ValueError, RecursionError):
            value = {}
        call = replace(self._call, arguments=compact_json(value if isinstance(value, dict) else {}))
        self._call = None
        return (call,)


class MessageText:
    """What the deltas of an answer add up to."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[tuple[ToolCall, list[str]]] = []

    def add(self, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            if isinstance(delta, Content):
                self._content.append(delta.text)
            elif isinstance(delta, Reasoning):
                self._reasoning.append(delta.text)
            elif delta.index < len(self._calls):
                self._calls[delta.index][1].append(delta.arguments)
            else:
                self._calls.append((delta, [delta.arguments]))

    @property
    def content(self) -> str:
        return "".join(self._content)

    @property
    def reasoning(self) -> str:
        return "".join(self._reasoning)

    @property
    def calls(self) -> Sequence[ToolCall]:
        return [replace(call, arguments="".join(arguments)) for call, arguments in self._calls]


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def content_of(deltas: Sequence[Delta]) -> str:
    """The content that `deltas` add."""
    return "".join(delta.text for delta in deltas if isinstance(delta, Content))


def text_of(delta: Delta | None) -> str:
    """The content of one delta, "" for none."""
    return delta.text if isinstance(delta, Content) else ""
