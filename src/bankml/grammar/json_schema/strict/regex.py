"""Regular expressions as GBNF rules for JSON strings whose text they match.

Python's parser reads the expression, with ECMAScript's classes on ASCII. Look-around, back-references, `\\p{…}` and
anchors within an expression have no equal in a grammar and are refused.
"""

import re
from collections.abc import Iterable, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from bankml.grammar.json_schema.rules import RuleSet

MAX_REPEAT = 1000
MAX_CODE = 0x10FFFF
JSON_TEXT = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), (0x80, MAX_CODE))
"""Characters that stand for themselves inside a JSON string."""

DIGITS, SPACES = ((48, 57),), ((9, 13), (32, 32), (0xA0, 0xA0), (0xFEFF, 0xFEFF), (0x2028, 0x2029))
WORDS = ((48, 57), (65, 90), (95, 95), (97, 122))
LINE_ENDS = ((10, 10), (13, 13), (0x2028, 0x2029))
CATEGORIES = {
    sre.CATEGORY_DIGIT: (DIGITS, False),
    sre.CATEGORY_NOT_DIGIT: (DIGITS, True),
    sre.CATEGORY_SPACE: (SPACES, False),
    sre.CATEGORY_NOT_SPACE: (SPACES, True),
    sre.CATEGORY_WORD: (WORDS, False),
    sre.CATEGORY_NOT_WORD: (WORDS, True),
}

Ranges = Sequence[tuple[int, int]]


class Unenforceable(Exception):
    """No grammar rule holds this expression; the message says what in it."""


def regex_rule(pattern: str, rules: RuleSet) -> str:
    """A rule's text for the JSON strings in which `pattern` matches. Raises Unenforceable."""
    rules.budget.step(len(pattern))
    try:
        tree = list(sre_parser.parse(_without_u(pattern)))
    except (re.error, OverflowError, RecursionError) as error:
        raise Unenforceable(f"the pattern is not a supported regular expression: {error}") from None
    begin = bool(tree) and tree[0] == (sre.AT, sre.AT_BEGINNING)
    end = bool(tree) and tree[-1] == (sre.AT, sre.AT_END)
    inner = tree[1 if begin else 0 : len(tree) - 1 if end and len(tree) > (1 if begin else 0) else len(tree)]
    any_text = f"{rules.add_fixed('char')}*"
    parts = [*([] if begin else [any_text]), _sequence(inner, rules), *([] if end else [any_text])]
    return rf'"\"" {" ".join(part for part in parts if part)} "\""'


def _without_u(pattern: str) -> str:
    """ECMAScript's `\\/` and `\\-`, which Python's parser knows only as they are; and `(?<name>…)`."""
    return re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)


def _sequence(items: Iterable[Any], rules: RuleSet) -> str:
    return " ".join(text for item in items if (text := _item(item, rules)))


def _item(item: Any, rules: RuleSet) -> str:
    rules.budget.step()
    operation, argument = item
    if operation is sre.LITERAL:
        return _characters([(argument, argument)])
    if operation is sre.NOT_LITERAL:
        return _characters(_complement([(argument, argument)]))
    if operation is sre.ANY:
        return _characters(_complement(LINE_ENDS))
    if operation is sre.IN:
        return _characters(_set(argument))
    if operation is sre.BRANCH:
        return f"({' | '.join(_sequence(branch, rules) or EMPTY for branch in argument[1])})"
    if operation is sre.SUBPATTERN:
        return f"({_sequence(argument[3], rules) or EMPTY})"
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        return _repeated(argument[0], argument[1], argument[2], rules)
    names = {sre.AT: "an anchor inside the pattern", sre.ASSERT: "look-ahead", sre.ASSERT_NOT: "look-ahead"}
    names |= {sre.GROUPREF: "a back-reference"}
    raise Unenforceable(f"{names.get(operation, str(operation).lower())} cannot be enforced")


EMPTY = '""'


def _repeated(least: int, most: Any, item: Any, rules: RuleSet) -> str:
    if least > MAX_REPEAT or (most is not sre.MAXREPEAT and most > MAX_REPEAT):
        raise Unenforceable(f"more than {MAX_REPEAT} repetitions cannot be enforced")
    rule = rules.add("pattern-part", f"({_sequence(item, rules) or EMPTY})")
    if most is sre.MAXREPEAT:
        return f"{rule}{'*' if not least else '+' if least == 1 else f'{{{least},}}'}"
    return f"{rule}?" if (least, most) == (0, 1) else f"{rule}{{{least},{most}}}"


def _set(items: Iterable[Any]) -> Ranges:
    found: list[tuple[int, int]] = []
    negated = False
    for operation, argument in items:
        if operation is sre.NEGATE:
            negated = True
        elif operation is sre.LITERAL:
            found.append((argument, argument))
        elif operation is sre.RANGE:
            found.append(argument)
        elif operation is sre.CATEGORY and argument in CATEGORIES:
            ranges, inverted = CATEGORIES[argument]
            found += _complement(ranges) if inverted else ranges
        else:
            raise Unenforceable("this character class cannot be enforced")
    return _complement(found) if negated else found


def _complement(ranges: Ranges) -> Ranges:
    found, at = [], 0
    for low, high in sorted(ranges):
        if at < low:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return [*found, (at, MAX_CODE)] if at <= MAX_CODE else found


def _characters(ranges: Ranges) -> str:
    """One character of `ranges` as it is written inside a JSON string: a quote, a backslash and the characters below
    the space are escaped there."""
    plain = [
        (max(low, first), min(high, last))
        for low, high in ranges
        for first, last in JSON_TEXT
        if max(low, first) <= min(high, last)
    ]
    parts = [f"[{''.join(map(_range, sorted(set(plain))))}]"] if plain else []
    for code, escaped in ((0x22, r'"\\\""'), (0x5C, r'"\\\\"'), (9, r'"\\t"'), (10, r'"\\n"'), (13, r'"\\r"')):
        if any(low <= code <= high for low, high in ranges):
            parts.append(escaped)
    if not parts:
        raise Unenforceable("a control character cannot be enforced")
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def _range(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"


def _escaped(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
