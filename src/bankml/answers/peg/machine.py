"""Runs a parsing expression grammar over a text that grows, in time linear in the text.

b11192 parses all of the text again after every token. What it finds depends on where the text ends only from the first
operation that meets the end; up to there the parse of a longer text is the same. The machine keeps its state at that
operation, and goes on from there. A state is a chain of frames that is never changed, so keeping it costs nothing.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Protocol

from bankml.answers.peg.program import ESCAPE, ESCAPE_BEGUN, Code, Op


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

_EMPTY, _END, _LITERAL, _SEQUENCE, _CHOICE, _REPEAT, _AHEAD, _NOT_AHEAD, _ANY, _SPACE, _CHARACTERS = map(
    int, list(Code)[:11]
)
_STRING, _UNTIL, _TAG, _ATOMIC = map(int, list(Code)[11:])


Resumption = tuple[Op, int, int, Frame | None, Any]
"""An operation, where it goes on, how many matches it has, what waits for it, and the meaning's state."""

Snapshot = tuple[str, Resumption | None, Any, Status]


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
        text, meaning = self._text, self._meaning
        size = len(text)
        while True:
            code = op.code
            status = 1
            if code in (_SEQUENCE, _CHOICE):
                if op.children:
                    stack = (op, 0, at, state, stack)
                    op, count = op.children[0], 0
                    continue
                status = int(code == _SEQUENCE)
            elif code == _TAG:
                stack = (op, 0, at, state, stack)
                state = meaning.entered(op.text, state, at)
                op, count = op.children[0], 0
                continue
            elif code == _REPEAT:
                if count != op.most:
                    if at < size:
                        stack = (op, count, at, state, stack)
                        op, count = op.children[0], 0
                        continue
                    self._keep(op, at, count, stack, state)
                    status = 1 if count >= op.least else 2
            elif code == _LITERAL:
                end = at + len(op.text)
                if text.startswith(op.text, at):
                    at = end
                elif end > size and op.text.startswith(text[at:]):
                    self._keep(op, at, 0, stack, state)
                    at, status = size, 2
                else:
                    status = 0
            elif code in (_AHEAD, _NOT_AHEAD, _ATOMIC):
                stack = (op, 0, at, state, stack)
                op, count = op.children[0], 0
                continue
            elif code == _UNTIL:
                at, status = self._until(op, at, stack, state)
            elif code == _SPACE:
                at = op.search.match(text, at).end()  # type: ignore[union-attr]
                if at == size:
                    self._keep(op, at, 0, stack, state)
            elif code == _CHARACTERS:
                at, status = self._characters(op, at, count, stack, state)
            elif code == _STRING:
                at, status = self._string(op, at, stack, state)
            elif code == _ANY:
                if at < size:
                    at += 1
                else:
                    self._keep(op, at, 0, stack, state)
                    status = 2
            elif code == _END:
                if at >= size:
                    self._keep(op, at, 0, stack, state)
                else:
                    status = 0
            # The operation has a status: give it to those that wait, up to one that has another child to try.
            while True:
                if stack is None:
                    self.status = Status(status)
                    if status:
                        self.state = state
                    else:
                        self.failed_at = at
                    return
                op, index, begin, before, stack = stack
                code = op.code
                if code == _SEQUENCE:
                    if status == 1 and index + 1 < len(op.children):
                        index += 1
                        stack = (op, index, begin, before, stack)
                        op, count = op.children[index], 0
                        break
                elif code == _TAG:
                    if status:
                        state = meaning.left(op.text, before, state, text, begin, at, status == 1)
                elif code == _REPEAT:
                    if status == 1:
                        if at != begin:
                            count = index + 1
                            break
                        state, status = before, 1 if index >= op.least else 0
                    elif status == 0:
                        at, state = begin, before
                        status = 1 if index >= op.least else 0
                elif code == _CHOICE:
                    if status == 0:
                        at, state = begin, before
                        if index + 1 < len(op.children):
                            stack = (op, index + 1, begin, before, stack)
                            op, count = op.children[index + 1], 0
                            break
                elif code == _ATOMIC:
                    if status == 2:
                        state = before
                elif code == _AHEAD:
                    at, state = begin, before
                elif code == _NOT_AHEAD:
                    at, state = begin, before
                    if status != 2:
                        status = 1 - status

    def _keep(self, op: Op, at: int, count: int, stack: Frame | None, state: Any) -> None:
        """`op` met the end of the text: a longer text is parsed from here on."""
        if self._saved is None:
            self._saved = (op, at, count, stack, state)

    def _until(self, op: Op, at: int, stack: Frame | None, state: Any) -> tuple[int, int]:
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

    def _string(self, op: Op, at: int, stack: Frame | None, state: Any) -> tuple[int, int]:
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
