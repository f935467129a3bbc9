"""Regular expressions of strings as rules, as far as b11192 supports them.

An invalid regular expression is refused; a valid one without an equivalent in GBNF (not anchored, look-around, \\d and
the like) allows every string, as in b11192.
"""

import re
from dataclasses import dataclass, field

from bankml.grammar.json_schema.rules import RuleSet, repetition

MAX_GROUPS = 100
"""Nested groups."""

SPECIAL = frozenset("|.()[]{}*+?^$")
"""Special characters in a pattern, unless escaped; GBNF's literals need no escape for them."""

GBNF_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[trn\\\"\[\]-])")
"""Escapes with the same meaning in GBNF, which are copied."""

NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")

INT32_MAX = 2**31 - 1

ANY_CHARACTER = r"[^\x0A\x0D]"


class Unsupported(Exception):
    """A regular expression without an equivalent in GBNF."""


class Invalid(Exception):
    """An invalid regular expression."""


@dataclass(frozen=True)
class PatternPart:
    """A piece of a sequence: the inside of a literal, or a rule's text."""

    text: str
    is_literal: bool

    @property
    def rule(self) -> str:
        return f'"{self.text}"' if self.is_literal else self.text


def pattern_rule(pattern: str, name: str, rules: RuleSet) -> str:
    """The name of the rule for JSON strings that match `pattern`. Raises Unsupported and Invalid; rules may have been
    added by then."""
    if len(pattern) < 2 or pattern[0] != "^" or pattern[-1] != "$":
        raise Unsupported("not anchored with '^' and '$'")
    rules.budget.step(len(pattern))
    reading = _Reading(pattern[1:-1], name, rules)
    rule = reading.sequence()
    if reading.groups:
        raise Invalid("unbalanced parentheses")
    return rules.add(name, rf'"\"" ({rule}) "\""')


@dataclass
class _Reading:
    """Reads `text` from `at`."""

    text: str
    name: str
    rules: RuleSet
    at: int = 0
    groups: int = 0
    repeated: dict[str, str] = field(default_factory=dict)

    def sequence(self) -> str:
        """Up to the end, or past the ")" that closes the group."""
        parts: list[PatternPart] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == ")":
                self.at += 1
                if not self.groups:
                    raise Invalid("unbalanced parentheses")
                self.groups -= 1
                break
            if character in "*+?":
                self.at += 1
                parts[-1:] = [PatternPart(_repeatable(parts).rule + character, False)]
            elif character == "{":
                parts[-1:] = [self._counted(parts)]
            else:
                parts.append(self._part(character))
        return _joined(parts)

    def _part(self, character: str) -> PatternPart:
        if character == ".":
            self.at += 1
            return PatternPart(self.rules.add("dot", ANY_CHARACTER), False)
        if character == "(":
            return self._group()
        if character in "^$":
            raise Unsupported("anchor inside the pattern")
        if character == "[":
            return self._class()
        if character == "|":
            self.at += 1
            return PatternPart("|", False)
        return self._literal()

    def _group(self) -> PatternPart:
        self.at += 1
        if self.text.startswith("?", self.at):
            if not self.text.startswith("?:", self.at):
                raise Unsupported("unsupported group syntax")
            self.at += 2
        self.groups += 1
        if self.groups > MAX_GROUPS:
            raise Unsupported("pattern nesting too deep")
        return PatternPart(f"({self.sequence()})", False)

    def _class(self) -> PatternPart:
        begin = self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "]":
            self.at += len(self._escape()) if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            raise Invalid("unterminated character class")
        self.at += 1
        return PatternPart(self.text[begin : self.at], False)

    def _escape(self) -> str:
        escape = GBNF_ESCAPE.match(self.text, self.at)
        if not escape:
            raise Unsupported("unsupported escape")
        return escape[0]

    def _counted(self, parts: list[PatternPart]) -> PatternPart:
        """The last part with "{n}", "{n,}", "{,m}" or "{n,m}". A part that is not a literal becomes a rule."""
        end = self.text.find("}", self.at)
        if end < 0:
            raise Unsupported("unterminated curly brackets")
        numbers = self.text[self.at + 1 : end].split(",")
        self.at = end + 1
        if len(numbers) > 2:
            raise Unsupported("wrong number of values in curly brackets")
        if len(numbers) == 1:
            least = _number(numbers[0])
            most: int | None = least
        else:
            least = _number(numbers[0]) if numbers[0] else 0
            most = _number(numbers[1]) if numbers[1] else None
        most = None if most == INT32_MAX else most
        part = _repeatable(parts)
        if part.is_literal:
            return PatternPart(repetition(part.rule, least, most), False)
        if part.text not in self.repeated:
            self.repeated[part.text] = self.rules.add(f"{self.name}-{len(self.repeated) + 1}", part.text)
        return PatternPart(repetition(self.repeated[part.text], least, most), False)

    def _literal(self) -> PatternPart:
        """A run of plain characters; the last one before a repetition is left for the next part."""
        found: list[str] = []
        while self.at < len(self.text):
            character, following = self.text[self.at], self.text[self.at + 1 : self.at + 2]
            if character == "\\":
                if not following:
                    raise Invalid("trailing backslash")
                taken, text = (2, following) if following in SPECIAL else (len(self._escape()), self._escape())
                found.append(text)
                self.at += taken
            elif character == '"':
                found.append('\\"')
                self.at += 1
            elif character not in SPECIAL and (
                not found or not following or following == "." or following not in SPECIAL
            ):
                found.append(character)
                self.at += 1
            else:
                break
        if not found:
            raise Unsupported("unsupported character")
        return PatternPart("".join(found), True)


def _repeatable(parts: list[PatternPart]) -> PatternPart:
    if not parts:
        raise Invalid("nothing to repeat")
    return parts[-1]


def _joined(parts: list[PatternPart]) -> str:
    """The parts as one rule, with adjacent literals joined."""
    out: list[PatternPart] = []
    literal: list[str] = []
    for part in parts:
        if part.is_literal:
            literal.append(part.text)
            continue
        if literal:
            out.append(PatternPart("".join(literal), True))
            literal = []
        out.append(part)
    if literal:
        out.append(PatternPart("".join(literal), True))
    return " ".join(part.rule for part in out)


def _number(text: str) -> int:
    """As C parses one: characters after the digits are ignored."""
    number = NUMBER.match(text)
    if not number or not -INT32_MAX - 1 <= int(number[1]) <= INT32_MAX:
        raise Unsupported("invalid number in curly brackets")
    return int(number[1])
