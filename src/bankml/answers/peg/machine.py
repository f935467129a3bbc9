"""Runs a parsing expression grammar over a text that grows, in time linear in the text.

b11192 parses all of the text again after every token. What it finds depends on where the text ends only from the first
operation that meets the end; up to there the parse of a longer text is the same. The machine keeps its state at that
operation, and goes on from there. A state is a chain of frames that is never changed, so keeping it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

from bankml.answers.peg.program import ESCAPE, ESCAPE_BEGUN, Op, OpCode


class Status(IntEnum):
    FAILED = 0
    MATCHED = 1
    NEEDS_MORE = 2


class Meaning(Protocol):
    """What the tags of a parse add up to. States are values that are never changed."""

    def entered(self, tag: str, state: Any, at: int) -> Any:
        """The state at the beginning of `tag`."""

    def left(self, tag: str, before: Any, state: Any, text: str, begin: int, end: int, complete: bool) -> Any:
        """The state behind `tag`, which matched `text[begin:end]`, so far where it is not `complete`. `before` is the
        state before it was entered."""


Frame = tuple[Op, int, int, Any, Any]
"""An operation that waits for a child: the operation, the child's index or the count of matches, the position where it
began, the meaning's state there, the frame that waits for it."""

_SEQUENCE, _CHOICE, _REPEAT, _TAG, _ATOMIC, _NOT_AHEAD = map(
    int, (OpCode.SEQUENCE, OpCode.CHOICE, OpCode.REPEAT, OpCode.TAG, OpCode.ATOMIC, OpCode.NOT_AHEAD)
)
_DESCENDING = frozenset({_SEQUENCE, _CHOICE, _TAG, _ATOMIC, _NOT_AHEAD, int(OpCode.AHEAD)})

Resumption = tuple[Op, int, int, Frame | None, Any]
"""An operation, where it goes on, how many matches it has, what waits for it, and the meaning's state."""

Snapshot = tuple[str, Resumption | None, Any, Status]


Leaf = Callable[[Op, int, int, Frame | None, Any], tuple[int, int]]
"""Runs an operation without children: where it ended, and its status."""


class Machine:
    """`push` text; `state` is then what the whole text means, `status` how its parse ended. A parse that fails, at
    `failed_at`, leaves the state as it was before."""

    def __init__(self, program: Op, meaning: Meaning, state: Any) -> None:
        self._meaning = meaning
        self._text = ""
        self._saved: Resumption | None = (program, 0, 0, None, state)
        self.state = state
        self.status = Status.NEEDS_MORE
        self.failed_at = 0
        self._leaves: dict[int, Leaf] = {
            OpCode.EMPTY: self._empty,
            OpCode.FAIL: self._fail,
            OpCode.END: self._end,
            OpCode.LITERAL: self._literal,
            OpCode.REPEAT: self._repeated,
            OpCode.ANY: self._any,
            OpCode.SPACE: self._space,
            OpCode.CHARACTERS: self._characters,
            OpCode.STRING: self._string,
            OpCode.UNTIL: self._until,
        }

    @property
    def text(self) -> str:
        return self._text

    def push(self, text: str) -> None:
        self._text += text
        if self._saved is not None:
            op, at, count, stack, state = self._saved
            self._saved = None
            self._run(op, at, count, stack, state)

    def snapshot(self) -> Snapshot:
        """What `restore` goes back to."""
        return self._text, self._saved, self.state, self.status

    def restore(self, snapshot: Snapshot) -> None:
        self._text, self._saved, self.state, self.status = snapshot

    def _run(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> None:
        """From the operation `op` at `at`; `count` of its matches were found before."""
        size = len(self._text)
        while True:
            code = op.code
            if code in _DESCENDING:
                stack = (op, 0, at, state, stack)
                if code == _TAG:
                    state = self._meaning.entered(op.text, state, at)
                op, count = op.children[0], 0
                continue
            if code == _REPEAT and count != op.most and at < size:
                stack = (op, count, at, state, stack)
                op, count = op.children[0], 0
                continue
            at, status = self._leaves[code](op, at, count, stack, state)
            following = self._unwound(at, status, stack, state)
            if following is None:
                return
            op, at, count, stack, state = following

    def _unwound(self, at: int, status: int, stack: Frame | None, state: Any) -> Resumption | None:
        """Gives a status to those that wait, up to one that goes on; None: the parse ends."""
        text, meaning = self._text, self._meaning
        while stack is not None:
            op, index, begin, before, stack = stack
            code = op.code
            if code == _SEQUENCE:
                if status == 1 and index + 1 < len(op.children):
                    return op.children[index + 1], at, 0, (op, index + 1, begin, before, stack), state
            elif code == _TAG:
                if status:
                    state = meaning.left(op.text, before, state, text, begin, at, status == 1)
            elif code == _REPEAT:
                if status == 1 and at != begin:
                    return op, at, index + 1, stack, state
                if status != 2:
                    at, state, status = begin, before, int(index >= op.least)
            elif code == _CHOICE:
                if status == 0:
                    at, state = begin, before
                    if index + 1 < len(op.children):
                        return op.children[index + 1], at, 0, (op, index + 1, begin, before, stack), state
            elif code == _ATOMIC:
                state = before if status == 2 else state
            else:  # looks ahead
                at, state = begin, before
                if code == _NOT_AHEAD and status != 2:
                    status = 1 - status
        self.status = Status(status)
        if status:
            self.state = state
        else:
            self.failed_at = at
        return None

    def _keep(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> None:
        """`op` met the end of the text: a longer text is parsed from here on."""
        if self._saved is None:
            self._saved = (op, at, count, stack, state)

    def _empty(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        return at, 1

    def _fail(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        return at, 0

    def _end(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        if at < len(self._text):
            return at, 0
        self._keep(op, at, 0, stack, state)
        return at, 1

    def _literal(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        text, size = self._text, len(self._text)
        end = at + len(op.text)
        if text.startswith(op.text, at):
            return end, 1
        if end > size and op.text.startswith(text[at:]):
            self._keep(op, at, 0, stack, state)
            return size, 2
        return at, 0

    def _repeated(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        """A repetition that has no room for another match."""
        if count == op.most:
            return at, 1
        self._keep(op, at, count, stack, state)
        return at, 1 if count >= op.least else 2

    def _space(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        at = op.search.match(self._text, at).end()  # type: ignore[union-attr]
        if at == len(self._text):
            self._keep(op, at, 0, stack, state)
        return at, 1

    def _any(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        if at < len(self._text):
            return at + 1, 1
        self._keep(op, at, 0, stack, state)
        return at, 2

    def _until(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        text = self._text
        size = len(text)
        if op.search is None:
            self._keep(op, size, 0, stack, state)
            return size, 2
        found = op.search.search(text, at)
        end = found.start() if found else size
        for begin in range(max(at, size - op.longest_tail), end):
            if text[begin:] in op.tails:
                self._keep(op, begin, 0, stack, state)
                return begin, 1
        if found:
            return end, 1
        self._keep(op, size, 0, stack, state)
        return size, 2

    def _characters(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        text, size = self._text, len(self._text)
        one = op.search
        while count != op.most:
            if at >= size:
                self._keep(op, at, count, stack, state)
                return at, 1 if count >= op.least else 2
            if not one.match(text, at):  # type: ignore[union-attr]
                break
            at, count = at + 1, count + 1
        return at, int(count >= op.least)

    def _string(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> tuple[int, int]:
        text, size = self._text, len(self._text)
        while True:
            at = op.search.match(text, at).end()  # type: ignore[union-attr]
            if at == size:
                self._keep(op, at, 0, stack, state)
                return at, 2
            if text[at] == op.text:
                return at, 1
            escape = ESCAPE[op.text].match(text, at)
            if escape:
                at = escape.end()
            elif ESCAPE_BEGUN.match(text, at):
                self._keep(op, at, 0, stack, state)
                return at, 2
            else:
                return at, 0
