"""An answer's text, parsed into the deltas that clients receive."""

from collections.abc import Sequence
from dataclasses import dataclass
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

    def begin(self, prefill: str) -> str:
        """The content that precedes the first token: `prefill` is the beginning of a continued answer, often ""."""

    def push(self, text: str, last: bool) -> Sequence[Delta]:
        """The deltas that `text` completes; `last`: it is the end of the answer."""


class PlainAnswer:
    """All of the text is content."""

    def begin(self, prefill: str) -> str:
        return prefill

    def push(self, text: str, last: bool) -> Sequence[Delta]:
        return (Content(text),) if text else ()


def content_of(deltas: Sequence[Delta]) -> str:
    """The content that `deltas` add."""
    return "".join(delta.text for delta in deltas if isinstance(delta, Content))
