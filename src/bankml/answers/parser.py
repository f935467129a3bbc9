"""The parser of one answer: its text to deltas, as llama-server streams them."""

import re
from collections.abc import Callable, Sequence

from bankml.answers.format import AnswerFormat
from bankml.answers.gemma_message import RULES, GemmaMeaning, GemmaMessage
from bankml.answers.message import Message, NativeMeaning
from bankml.answers.minimax_message import MinimaxMeaning, MinimaxMessage
from bankml.answers.peg.machine import Machine, Snapshot, Status
from bankml.answers.peg.program import compiled
from bankml.answers.rope import TextRope, length_of, tail_of
from bankml.text.answer import Content, Delta, Reasoning, ToolCall

NOT_BLANK = re.compile(r"[^ \n\r\t]")

MISMATCH = "The model produced output that does not match the expected {} format"
FEWER_CALLS = "Invalid diff: now finding less tool calls!"
FORMAT_NAMES = {"native": "peg-native", "gemma4": "peg-gemma4", "minimax": "peg-minimax-m3"}


AnyMessage = Message | GemmaMessage | MinimaxMessage


class FormattedAnswer:
    """`push` text as it is generated. `new_id` makes the id of a call that the model gave none.

    What b11192 finds by parsing the whole text after every token, and comparing the message with the one before. One
    thing differs, on purpose: an answer that breaks its format keeps what was parsed of it, and `problem` says what
    b11192 ends the request with.
    """

    def __init__(
        self, form: AnswerFormat, new_id: Callable[[], str], *, echo: bool = False, streamed: bool = True
    ) -> None:
        """`echo`: the beginning of a continued answer is part of the deltas. An answer of which nothing was parsed has
        all of its text for content, unless it is `streamed`."""
        self._form = form
        self._new_id = new_id
        self._machine = _machine(form)
        self._unparsed = form.opening
        self._streamed = streamed
        self._reasoning = self._content = self._arguments = 0
        self._ids: list[str] = []
        self._calls_sent = 0
        self._failed: tuple[Snapshot, str] | None = None
        self.problem = ""
        if form.continues and not echo:
            self._deltas(last=False)

    @property
    def has_calls(self) -> bool:
        return bool(self._calls_sent)

    def push(self, text: str, last: bool) -> Sequence[Delta]:
        self._unparsed += text
        deltas = self._deltas(last)
        empty = last and not (self._streamed or self._reasoning or self._content or self._calls_sent)
        if empty and (all_text := self._machine.text[len(self._form.opening) :]):
            return (Content(all_text),)
        return deltas

    def _deltas(self, last: bool) -> Sequence[Delta]:
        machine = self._machine
        text, self._unparsed = self._unparsed, ""
        before = machine.snapshot()
        machine.push(text)
        if machine.status is not Status.FAILED:
            self._failed = None
        else:
            self._failed = self._failed or (before, text)
            if last or not machine.failed_at:
                self.problem = MISMATCH.format(FORMAT_NAMES[self._form.mapping])
            if not last:
                return ()
            machine.restore(self._failed[0])
            self._push_what_matches(self._failed[1])
        message: AnyMessage = machine.state
        reasoning = self._thought(message.reasoning)
        if not (reasoning or message.content or message.calls):
            return ()
        if len(message.calls) < self._calls_sent:
            self.problem = FEWER_CALLS
            return ()
        out: list[Delta] = []
        self._reasoning, added = self._grown(reasoning, self._reasoning)
        if added:
            out.append(Reasoning(added))
        self._content, added = self._grown(message.content, self._content)
        if added:
            out.append(Content(added))
        if message.calls or self._calls_sent:
            self._call_deltas(message, out)
        return out

    def _push_what_matches(self, text: str) -> None:
        """As much of `text` as does not break the format, found by halving."""
        machine = self._machine
        before = machine.snapshot()
        machine.push(text)
        if machine.status is not Status.FAILED or len(text) < 2:
            return
        machine.restore(before)
        half = len(text) // 2
        self._push_what_matches(text[:half])
        if machine.status is not Status.FAILED:
            self._push_what_matches(text[half:])

    def _grown(self, rope: TextRope | None, sent: int) -> tuple[int, str]:
        length = length_of(rope)
        return length, tail_of(rope, self._machine.text, length - sent) if length > sent else ""

    def _thought(self, rope: TextRope | None) -> TextRope | None:
        """A thought of white space alone is none."""
        if rope is None or self._reasoning:
            return rope
        one: TextRope | None = rope
        while one is not None:
            if isinstance(one.piece, tuple) and NOT_BLANK.search(self._machine.text, *one.piece):
                return rope
            one = one.before
        return None

    def _call_deltas(self, message: AnyMessage, out: list[Delta]) -> None:
        calls, sent = message.calls, self._calls_sent
        if sent:
            self._arguments, added = self._grown(calls[sent - 1].arguments, self._arguments)
            if added:
                out.append(ToolCall(sent - 1, "", "", added))
        for index in range(sent, len(calls)):
            call = calls[index]
            if len(self._ids) <= index:
                self._ids.append(call.id or self._new_id())
            self._arguments, added = self._grown(call.arguments, 0)
            out.append(ToolCall(index, self._ids[index], call.name, added))
        self._calls_sent = len(calls)


def _machine(form: AnswerFormat) -> Machine:
    if form.mapping == "gemma4":
        return Machine(compiled(form.arena, RULES), GemmaMeaning(), GemmaMessage())
    if form.mapping == "minimax":
        return Machine(compiled(form.arena), MinimaxMeaning(), MinimaxMessage())
    return Machine(compiled(form.arena), NativeMeaning(), Message())
