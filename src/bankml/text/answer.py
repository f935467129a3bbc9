"""An answer's text, parsed into the deltas that clients receive."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Content:
    """A piece of the answer's content."""

    text: str


Delta = Content
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
    return "".join(delta.text for delta in deltas)
