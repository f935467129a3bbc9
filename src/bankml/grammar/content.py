"""The content of a JSON answer: the value alone, told piece by piece as the answer comes.

llama-server b11192 reads the whole answer again after every token; here each character is looked at once, and what is
told is the same. Two things differ, on purpose: an answer that stops being JSON (a pattern can let a quote into a
string) ends its content there, where b11192 ends the request with an error; and an answer cut before its value began
is told as it stands, thoughts too.
"""

from bankml.grammar.json_value import JsonValue, Outcome
from bankml.grammar.template_grammar import FENCE, WHITE_SPACE, AnswerShape


class ContentStream:
    """`push` the answer's text as it comes. `begun` tells whether a value has."""

    def __init__(self, shape: AnswerShape, generation_prompt: str) -> None:
        """`generation_prompt`: the end of the prompt that the answer's grammar begins with."""
        self._shape = shape
        self._head: str | None = generation_prompt
        self._value = JsonValue()
        self.begun = False

    def push(self, text: str) -> str:
        """What `text` adds to the value."""
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
        """Where in `head` the value begins; None: not yet."""
        opening = self._shape.opening or ""
        if not head.startswith(opening):
            return None
        at = _behind_space(head, len(opening))
        if self._shape.thought_end:
            behind = self._behind_thought(head, at)
            if behind is None:
                return None
            at = _behind_space(head, behind)
        rest = head[at : at + len(FENCE)]
        if rest == FENCE:
            at = _behind_space(head, at + len(FENCE))
            return at if at < len(head) else None
        return None if FENCE.startswith(rest) else at

    def _behind_thought(self, head: str, at: int) -> int | None:
        """Where the thought that begins at `at` ends; `at` itself, if none begins there."""
        start, end = self._shape.thought_start.strip(WHITE_SPACE), self._shape.thought_end.strip(WHITE_SPACE)
        if not head.startswith(start, at):
            begins = start.startswith(head[at:]) and at < len(head)
            return None if begins else at
        found = head.find(end, at + len(start))
        return found + len(end) if found >= 0 else None


def _behind_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in WHITE_SPACE:
        at += 1
    return at
