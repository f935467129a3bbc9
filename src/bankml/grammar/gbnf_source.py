"""The text of a grammar with a position, and errors with line and column."""

import re

from bankml.errors import RequestError

REASON = "Failed to initialize samplers: failed to parse grammar"
"""llama-server's message; the reason is only in its log."""

_SPACE = re.compile(r"(?:[ \t]+|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_NAME = re.compile(r"[a-zA-Z0-9-]+")
_DIGITS = re.compile(r"[0-9]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_GLIMPSE = 24  # characters


class GbnfSource:
    """Reads from `at`, an offset in characters. Methods that do not find what they expect raise RequestError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        if "\0" in text:
            raise self.refuse("a NUL character", text.index("\0"))

    def refuse(self, why: str, at: int | None = None) -> RequestError:
        """The error for the text at `at`, or at the current position."""
        at = self.at if at is None else at
        before = self.text[:at]
        line = before.count("\n") + before.count("\r") - before.count("\r\n") + 1
        column = at - max(before.rfind("\n"), before.rfind("\r"))
        return RequestError(f"{REASON}: line {line}, column {column}: {why}")

    @property
    def at_end(self) -> bool:
        return self.at == len(self.text)

    @property
    def at_name(self) -> bool:
        return _NAME.match(self.text, self.at) is not None

    @property
    def at_digit(self) -> bool:
        return _DIGITS.match(self.text, self.at) is not None

    def peek(self, ahead: int = 0) -> str:
        """The current character, "" at the end."""
        return self.text[self.at + ahead : self.at + ahead + 1]

    def next(self) -> str:
        if self.at_end:
            raise self.refuse("unexpected end of input")
        self.at += 1
        return self.text[self.at - 1]

    def take(self, literal: str) -> bool:
        """Whether `literal` is next; then it is consumed."""
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def match(self, pattern: re.Pattern[str]) -> str:
        """The match of `pattern` at the current position, consumed; "" for none."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def expect(self, literal: str) -> None:
        if not self.take(literal):
            raise self._instead_of("::=" if literal == "::=" else f"'{literal}'")

    def skip_space(self, lines: bool) -> None:
        """Spaces, tabs and comments; with `lines`, also line ends."""
        self.match(_SPACE_AND_LINES if lines else _SPACE)

    def end_line(self) -> None:
        if not self.at_end and not self.match(_LINE_END):
            raise self._instead_of("newline or end")

    def name(self) -> str:
        name = self.match(_NAME)
        if not name:
            raise self._instead_of("name")
        return name

    def integer(self, otherwise: str, most: int) -> int:
        """A decimal integer up to `most`; `otherwise` is the error if there is none."""
        place = self.at
        digits = self.match(_DIGITS)
        if not digits:
            raise self.refuse(otherwise)
        # Compared by length first: Python refuses to read thousands of digits.
        significant = digits.lstrip("0")
        if len(significant) > len(str(most)) or int(significant or "0") > most:
            raise self.refuse(f"the number is too large: at most {most}", place)
        return int(significant or "0")

    def hexadecimal(self, n: int) -> int:
        digits = self.text[self.at : self.at + n]
        if not re.fullmatch(f"[0-9a-fA-F]{{{n}}}", digits):
            raise self.refuse(f"expecting {n} hex chars")
        self.at += n
        return int(digits, 16)

    def up_to(self, mark: str) -> str:
        """The text up to `mark`, which is consumed too."""
        end = self.text.find(mark, self.at)
        if end < 0:
            raise self.refuse(f"expecting '{mark}'", len(self.text))
        start, self.at = self.at, end + len(mark)
        return self.text[start : self.at]

    def _instead_of(self, expected: str) -> RequestError:
        rest = self.text[self.at : self.at + _GLIMPSE].splitlines()
        got = f" at {rest[0]!r}" if rest and rest[0] else ", but the line ends" if rest else ", but the text ends"
        return self.refuse(f"expecting {expected}{got}")
