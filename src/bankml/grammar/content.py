"""The content of a JSON answer: only the value, piece by piece as the answer is generated.

llama-server b11192 parses the entire answer again after every token; here each character is read once, and the content
is the same, with two intended differences: an answer that stops being JSON (a pattern can allow a quote in a string)
ends its content there, where b11192 ends the request with an error; and the content of an answer that ended before its
value began is all of its text, including reasoning.
"""

from collections.abc import Sequence

from bankml.grammar.json_value import JsonValue, Outcome
from bankml.grammar.template_grammar import FENCE, WHITE_SPACE, AnswerShape
from bankml.text.answer import Content, Delta


class JsonAnswer:
    """The parser of an answer that is constrained to a JSON value: its content is the value.

    An answer that ends before its value began has all of its text as content, unless it is streamed: then it has none,
    as in llama-server.
    """

    def __init__(self, shape: AnswerShape, opening: str, streamed: bool) -> None:
        """`opening`: the end of the prompt, which the answer's grammar accepted before the first token."""
        self._value = ContentStream(shape, opening)
        self._unread: list[str] | None = None if streamed else []

    def begin(self, prefill: str) -> str:
        return self._value.push("")

    def push(self, text: str, last: bool) -> Sequence[Delta]:
        added = self._value.push(text)
        if self._unread is not None and not self._value.begun:
            self._unread.append(text)
            if last:
                added = "".join(self._unread)
        return (Content(added),) if added else ()


class ContentStream:
    """`push` the answer's text as it is generated. `begun`: the value has begun."""

    def __init__(self, shape: AnswerShape, generation_prompt: str) -> None:
        """`generation_prompt`: the end of the prompt, with which the answer's grammar begins."""
        self._shape = shape
        self._head: str | None = generation_prompt
        self._value = JsonValue()
        self.begun = False

    def push(self, text: str) -> str:
        """The part of the value that `text` completes."""
        if self._head is not None:
            self._head += text
            at = self._value_at(self._head)
            if at is None:
                return ""
            text, self._head = self._head[at:], None
        added, _ = self._value.feed(text)
        self.begun = self.begun or bool(added)
        return added

    @property
    def broken(self) -> bool:
        return self._value.outcome is Outcome.BROKEN

    def _value_at(self, head: str) -> int | None:
        """The index in `head` where the value begins; None: not yet known."""
        opening = self._shape.opening or ""
        if not head.startswith(opening):
            return None
        at = _after_space(head, len(opening))
        if self._shape.thought_end:
            behind = self._after_reasoning(head, at)
            if behind is None:
                return None
            at = _after_space(head, behind)
        rest = head[at : at + len(FENCE)]
        if rest == FENCE:
            at = _after_space(head, at + len(FENCE))
            return at if at < len(head) else None
        return None if FENCE.startswith(rest) else at

    def _after_reasoning(self, head: str, at: int) -> int | None:
        """The end of the reasoning that begins at `at`; `at` itself if none begins there."""
        start, end = self._shape.thought_start.strip(WHITE_SPACE), self._shape.thought_end.strip(WHITE_SPACE)
        if not head.startswith(start, at):
            begins = start.startswith(head[at:]) and at < len(head)
            return None if begins else at
        found = head.find(end, at + len(start))
        return found + len(end) if found >= 0 else None


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in WHITE_SPACE:
        at += 1
    return at
