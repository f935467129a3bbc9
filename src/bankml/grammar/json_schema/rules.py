"""The registry of a grammar's rules: unique names, the fixed rules of JSON, and the final text."""

import re
from collections.abc import Iterable

from bankml.grammar.json_schema.budget import SchemaBudget

NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9-]+")

SPACE = r'| " " | "\n"{1,2} [ \t]{0,20}'

VALUES: dict[str, tuple[str, tuple[str, ...]]] = {
    "boolean": ('("true" | "false")', ()),
    "decimal-part": ("[0-9]{1,16}", ()),
    "integral-part": ("[0] | [1-9] [0-9]{0,15}", ()),
    "number": (
        '("-"? integral-part) ("." decimal-part)? ([eE] [-+]? integral-part)?',
        ("integral-part", "decimal-part"),
    ),
    "integer": ('("-"? integral-part)', ("integral-part",)),
    "value": (
        "object | array | string | number | boolean | null",
        ("object", "array", "string", "number", "boolean", "null"),
    ),
    "object": (
        '"{" space ( string ":" space value ("," space string ":" space value)* )? space "}"',
        ("string", "value"),
    ),
    "array": ('"[" space ( value ("," space value)* )? space "]"', ("value",)),
    "uuid": (r'"\"" ' + ' "-" '.join(f"[0-9a-fA-F]{{{size}}}" for size in (8, 4, 4, 4, 12)) + r' "\""', ()),
    "char": (r'[^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})', ()),
    "string": (r'"\"" char* "\""', ("char",)),
    "null": ('"null"', ()),
}
"""Rules of JSON values: the text, and the rules that it references."""

_HOUR, _SIXTY = '[01] [0-9] | "2" [0-3]', "[0-5] [0-9]"

FORMATS: dict[str, tuple[str, tuple[str, ...]]] = {
    "date": (
        '[0-9]{4} "-" ( "0" [1-9] | "1" [0-2] ) "-" ( "0" [1-9] | [1-2] [0-9] | "3" [0-1] )',
        (),
    ),
    "time": (
        f'({_HOUR}) ":" {_SIXTY} ":" {_SIXTY} ( "." [0-9]{{3}} )? ( "Z" | ( "+" | "-" ) ( {_HOUR} ) ":" {_SIXTY} )',
        (),
    ),
    "date-time": ('date "T" time', ("date", "time")),
    "date-string": (r'"\"" date "\""', ("date",)),
    "time-string": (r'"\"" time "\""', ("time",)),
    "date-time-string": (r'"\"" date-time "\""', ("date-time",)),
}
"""Rules of string formats."""

FIXED = VALUES | FORMATS

RESERVED = frozenset({"root", *FIXED})
"""Names that a schema's own rules must not have."""

ESCAPED = str.maketrans({"\r": "\\r", "\n": "\\n", '"': '\\"', "\\": "\\\\"})


def literal(text: str) -> str:
    """`text` as a GBNF literal."""
    return f'"{text.translate(ESCAPED)}"'


class RuleSet:
    """Rules by name. An equal rule is kept once; a different rule of the same name gets a number."""

    def __init__(self, budget: SchemaBudget) -> None:
        self.budget = budget
        self._rules = {"space": SPACE}
        self._added: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def add(self, name: str, rule: str) -> str:
        """The unique name of `rule`, derived from `name`. Raises SchemaError if the grammar grows too large."""
        self.budget.step()
        base = NOT_IN_A_NAME.sub("-", name)
        key, number = base, 0
        while (there := self._rules.get(key)) is not None:
            if there == rule:
                return key
            self.budget.step()
            key, number = f"{base}{number}", number + 1
        self.budget.text(len(key) + len(rule))
        self._rules[key] = rule
        self._added.append(key)
        return key

    def reserve(self, name: str) -> str:
        """A name that no rule has, made of `name`, for a rule that refers to itself: `define` gives its text."""
        wanted = NOT_IN_A_NAME.sub("-", name)
        key, number = wanted, 0
        while key in self._rules or key in RESERVED:
            self.budget.step()
            key, number = f"{wanted}{number}", number + 1
        self._rules[key] = ""
        return key

    def define(self, key: str, rule: str) -> None:
        """The text of a reserved rule."""
        self.budget.text(len(key) + len(rule))
        self._rules[key] = rule

    def add_fixed(self, name: str, fixed: str | None = None) -> str:
        """The name of the fixed rule `fixed` (default: `name`), added with all the rules it references."""
        rule, needed = FIXED[fixed or name]
        key = self.add(name, rule)
        for one in needed:
            if one not in self._rules:
                self.add_fixed(one)
        return key

    def mark(self) -> int:
        """A point for `undo` to return to."""
        return len(self._added)

    def undo(self, mark: int) -> None:
        for key in self._added[mark:]:
            del self._rules[key]
        del self._added[mark:]

    def text(self) -> str:
        """The grammar, its rules sorted by name."""
        return "".join(f"{name} ::= {self._rules[name]}\n" for name in sorted(self._rules))


def repetition(item: str, least: int, most: int | None) -> str:
    """`item` from `least` to `most` times (None: no maximum), in GBNF's shortest form."""
    if most == 0:
        return ""
    if (least, most) == (0, 1):
        return f"{item}?"
    if most is None and least in (0, 1):
        return item + ("+" if least else "*")
    return f"{item}{{{least},{'' if most is None else most}}}"


def separated(item: str, separator: str, least: int, most: int | None) -> str:
    """`item` from `least` to `most` times with `separator` between."""
    if most == 0:
        return ""
    if (least, most) == (0, 1):
        return f"{item}?"
    others = repetition(f"({separator} {item})", max(least - 1, 0), None if most is None else most - 1)
    return f"{item} {others}" if least else f"({item} {others})?"


def joined(rules: Iterable[str]) -> str:
    return " | ".join(rules)
