"""One JSON value parsed piece by piece, as by b11192: which characters belong to it is known at once.

Its strings may contain any character, also control characters; its numbers end only where they cannot continue. An
escape sequence counts when it is complete.
"""

from enum import Enum

WHITE_SPACE = frozenset(" \t\n\v\f\r")
DIGITS = frozenset("0123456789")
HEX = frozenset("0123456789abcdefABCDEF")
ESCAPABLE = frozenset('"\\/bfnrt')
WORDS = {"t": "true", "f": "false", "n": "null"}


class Outcome(Enum):
    OPEN = "more belongs to the value"
    COMPLETE = "the value is complete"
    BROKEN = "this is not JSON"


NUMBER: dict[str, tuple[tuple[frozenset[str], str], ...]] = {
    "-": ((frozenset("0"), "0"), (DIGITS - {"0"}, "1")),
    "0": ((frozenset("."), "."), (frozenset("eE"), "e")),
    "1": ((DIGITS, "1"), (frozenset("."), "."), (frozenset("eE"), "e")),
    ".": ((DIGITS, ".1"),),
    ".1": ((DIGITS, ".1"), (frozenset("eE"), "e")),
    "e": ((frozenset("+-"), "e+"), (DIGITS, "e1")),
    "e+": ((DIGITS, "e1"),),
    "e1": ((DIGITS, "e1"),),
}
"""The states of a number, named by an example, and the transitions by character."""

ENDS = frozenset({"0", "1", ".1", "e1"})
"""The states in which a number may end."""

GOES_ON = DIGITS | frozenset(".eE+-")
"""Characters that cannot follow a number."""


class JsonValue:
    """`feed` takes text until the value is complete or broken; see `outcome`."""

    def __init__(self) -> None:
        self.outcome = Outcome.OPEN
        self._open: list[str] = []
        self._expects = "value"
        self._word = ""
        self._number = ""
        self._escape = ""

    def feed(self, text: str) -> tuple[str, int]:
        """The part of `text` that belongs to the value and is decided, and where in `text` it ends. An incomplete
        escape sequence is kept."""
        out: list[str] = []
        at = 0
        while at < len(text) and self.outcome is Outcome.OPEN:
            taken = self._take(text[at])
            if taken is not None:
                out.append(taken)
                at += 1
        return "".join(out), at

    def _take(self, character: str) -> str | None:
        """What `character` adds to the value; None: it does not belong to the current state and is read again."""
        if self._expects in ("string", "key string"):
            return self._in_string(character)
        if self._expects == "number":
            return self._in_number(character)
        if self._expects == "word":
            return self._in_word(character)
        if character in WHITE_SPACE and not (self._expects == "value" and not self._open):
            return character
        return self._between_values(character)

    def _between_values(self, character: str) -> str | None:
        expects = self._expects
        if (expects, character) in (("key or }", "}"), ("value or ]", "]")):
            return self._close(character)
        if expects in ("value", "value or ]"):
            return self._begin(character)
        if expects in ("key", "key or }") and character == '"':
            self._expects = "key string"
        elif expects == ":" and character == ":":
            self._expects = "value"
        elif expects == "," and character == ",":
            self._expects = "key" if self._open[-1] == "}" else "value"
        elif expects == "," and character == self._open[-1]:
            return self._close(character)
        else:
            return self._break()
        return character

    def _begin(self, character: str) -> str | None:
        if character in "{[":
            self._open.append("}" if character == "{" else "]")
            self._expects = "key or }" if character == "{" else "value or ]"
        elif character == '"':
            self._expects = "string"
        elif character in WORDS:
            self._expects, self._word = "word", WORDS[character][1:]
        elif character == "-" or character in DIGITS:
            self._expects, self._number = "number", character if character in "-0" else "1"
        else:
            return self._break()
        return character

    def _in_string(self, character: str) -> str | None:
        if self._escape:
            return self._in_escape(character)
        if character == "\\":
            self._escape = character
            return ""
        if character == '"':
            if self._expects == "key string":
                self._expects = ":"
            else:
                self._end()
        return character

    def _in_escape(self, character: str) -> str | None:
        first = len(self._escape) == 1
        if character not in (ESCAPABLE | {"u"} if first else HEX):
            return self._break()
        self._escape += character
        if len(self._escape) < 6 and self._escape[1] == "u":
            return ""
        complete, self._escape = self._escape, ""
        return complete

    def _in_number(self, character: str) -> str | None:
        for characters, state in NUMBER[self._number]:
            if character in characters:
                self._number = state
                return character
        if self._number not in ENDS or character in GOES_ON:
            return self._break()
        self._end()
        return None

    def _in_word(self, character: str) -> str | None:
        if character != self._word[0]:
            return self._break()
        self._word = self._word[1:]
        if not self._word:
            self._end()
        return character

    def _close(self, character: str) -> str:
        self._open.pop()
        self._end()
        return character

    def _end(self) -> None:
        """A value ended: the outermost, or an inner one."""
        self._expects = ","
        if not self._open:
            self.outcome = Outcome.COMPLETE

    def _break(self) -> str | None:
        self.outcome = Outcome.BROKEN
        return None
