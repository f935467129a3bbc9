"""GBNF parsed as by llama.cpp b11192 (src/llama-grammar.cpp): text to the flat elements that native code runs on.

A rule is a run of elements: alternatives separated by ALTERNATIVE, closed by END. Repetitions and brackets become rules
of their own. The accepted language is the same, except for grammars that would hang or exhaust memory: see
MOST_ELEMENTS and the limits after it, and `{m,n}` with n < m.
"""

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bankml.grammar.gbnf_source import GbnfSource

# Kinds of elements, as native/grammar/program.h has them.
(
    END,
    ALTERNATIVE,
    RULE,
    CHARACTER,
    NOT_CHARACTER,
    UPPER,
    ALSO,
    ANY,
    TOKEN,
    NOT_TOKEN,
) = range(10)
KIND_BITS = 4

MOST_REPETITIONS = 2000
"""b11192's own limit: of a count, and of the rules in an item times its repetitions. A larger maximum is none."""

MOST_ELEMENTS = 1 << 19
"""Of an entire grammar. b11192 has no such limit: long literals, each repeated 2,000 times, fill its memory."""

LONGEST_TEXT = 1 << 19
"""Characters. b11192 has no such limit."""

DEEPEST_BRACKETS = 200
"""Nested brackets. b11192 has no such limit and overflows its stack."""

TOO_MANY_RULES = (
    "number of rules that are going to be repeated multiplied by the new repetition exceeds sane defaults, "
    "please reduce the number of repetitions or rule complexity"
)
TOO_MANY_REPETITIONS = "number of repetitions exceeds sane defaults, please reduce the number of repetitions"

Tokenize = Callable[[str], Sequence[int]]
Elements: TypeAlias = "array[int]"

_ESCAPED = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_PLAIN = re.compile(r'[^"\\]+')
_COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True)
class ParsedGrammar:
    """A grammar's elements: kinds uint8 [n], values uint32 [n] and, per rule, its first element, uint32 [rules].

    `root` is the rule to start from. `places` are offsets into the text: where each rule is defined or first named.
    """

    kinds: NDArray[np.uint8]
    values: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    root: int
    places: Sequence[int]


def parse(source: GbnfSource, root: str = "root", tokenize: Tokenize | None = None) -> ParsedGrammar:
    """The rules of a text. `tokenize`, which parses control tokens' texts as such, is for terminals like `<token>`.

    Raises RequestError with line and column for an invalid grammar, an undefined rule, or one that is too large.
    """
    return _Parser(source, tokenize).parse(root)


def _element(kind: int, value: int = 0) -> int:
    return value << KIND_BITS | kind


_END, _ALTERNATIVE = _element(END), _element(ALTERNATIVE)


class _Parser:
    def __init__(self, source: GbnfSource, tokenize: Tokenize | None) -> None:
        self._source = source
        self._tokenize = tokenize
        self._numbers: dict[str, int] = {}
        self._places: list[int] = []  # of every rule, named or generated
        self._rules: dict[int, Elements] = {}
        self._size = 0

    def parse(self, root: str) -> ParsedGrammar:
        source = self._source
        if len(source.text) > LONGEST_TEXT:
            raise source.refuse(f"the grammar is too long: more than {LONGEST_TEXT} characters", LONGEST_TEXT)
        source.skip_space(True)
        while not source.at_end:
            self._rule()
        if not self._rules or root not in self._numbers:
            raise source.refuse(f"the grammar has no rule '{root}'", 0)
        self._check_defined()
        elements, starts = array("Q"), array("I")
        for number in range(len(self._places)):
            starts.append(len(elements))
            elements.extend(self._rules[number])
        packed = np.frombuffer(elements, np.uint64)
        kinds = (packed & ((1 << KIND_BITS) - 1)).astype(np.uint8)
        return ParsedGrammar(
            kinds,
            (packed >> KIND_BITS).astype(np.uint32),
            np.frombuffer(starts, np.uint32),
            self._numbers[root],
            self._places,
        )

    def _check_defined(self) -> None:
        missing = [name for name, number in self._numbers.items() if number not in self._rules]
        if missing:
            name = missing[0]
            raise self._source.refuse(f"Undefined rule identifier '{name}'", self._places[self._numbers[name]])

    def _rule(self) -> None:
        source = self._source
        place = source.at
        name = source.name()
        source.skip_space(False)
        number = self._number(name, place)
        self._places[number] = place
        source.expect("::=")
        source.skip_space(True)
        self._alternatives(number, 0)
        source.end_line()
        source.skip_space(True)

    def _number(self, name: str, place: int) -> int:
        number = self._numbers.setdefault(name, len(self._places))
        if number == len(self._places):
            self._places.append(place)
        return number

    def _new_rule(self, place: int) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def _define(self, number: int, elements: Elements) -> None:
        """Defines a rule; the last definition counts."""
        self._rules[number] = elements
        self._grow(len(elements))

    def _grow(self, n: int) -> None:
        self._size += n
        if self._size > MOST_ELEMENTS:
            raise self._source.refuse(f"the grammar is too large: more than {MOST_ELEMENTS} elements")

    def _alternatives(self, number: int, depth: int) -> None:
        """Reads `a b | c` up to what does not belong to it."""
        elements: Elements = array("Q")
        self._sequence(elements, depth)
        while self._source.take("|"):
            self._source.skip_space(True)
            elements.append(_ALTERNATIVE)
            self._sequence(elements, depth)
        elements.append(_END)
        self._define(number, elements)

    def _sequence(self, elements: Elements, depth: int) -> None:
        source, nested = self._source, depth > 0
        item = len(elements)  # where the last item begins
        weight = 1  # how many rules it consists of
        while True:
            place = source.at
            c = source.peek()
            if c in ("*", "+", "?", "{"):
                weight = self._repeat(elements, item, weight, self._counts(c, nested), place)
                continue
            if len(elements) + self._size > MOST_ELEMENTS:
                self._grow(len(elements))
            start, item_weight = len(elements), 1
            if c == '"':
                self._literal(elements)
            elif c == "[":
                self._set(elements)
            elif c in ("<", "!"):
                elements.append(self._token())
            elif c == "(":
                item_weight = self._bracket(elements, depth)
            elif c == ".":
                source.take(".")
                elements.append(_element(ANY))
            elif source.at_name:
                elements.append(_element(RULE, self._number(source.name(), place)))
            else:
                return
            item, weight = start, item_weight
            source.skip_space(nested)

    def _bracket(self, elements: Elements, depth: int) -> int:
        """A rule of its own; returns how many rules it consists of."""
        source = self._source
        place = source.at
        if depth == DEEPEST_BRACKETS:
            raise source.refuse(f"brackets are nested deeper than {DEEPEST_BRACKETS}")
        source.take("(")
        source.skip_space(True)
        before = len(self._places)
        number = self._new_rule(place)
        self._alternatives(number, depth + 1)
        source.expect(")")
        elements.append(_element(RULE, number))
        return max(1, len(self._places) - before)

    def _counts(self, c: str, nested: bool) -> tuple[int, int | None]:
        """A repetition: (least, most or None)."""
        source = self._source
        place = source.at
        source.take(c)
        source.skip_space(nested)
        if c in _COUNTS:
            return _COUNTS[c]
        least = source.integer("expecting an int", 2**64 - 1)
        source.skip_space(nested)
        most: int | None = least
        if source.take(","):
            source.skip_space(nested)
            most = None
            if source.at_digit:
                most = source.integer("expecting an int", 2**64 - 1)
                source.skip_space(nested)
            source.expect("}")
        elif not source.take("}"):
            raise source.refuse("expecting ','")
        source.skip_space(nested)
        if least > MOST_REPETITIONS:
            raise source.refuse(TOO_MANY_REPETITIONS, place)
        if most is not None and most < least:
            raise source.refuse(f"a repetition of at least {least} and at most {most} is impossible", place)
        return least, most if most is not None and most <= MOST_REPETITIONS else None

    def _repeat(self, elements: Elements, item: int, weight: int, counts: tuple[int, int | None], place: int) -> int:
        """Repeats the item that begins at `item`; returns how many rules it then consists of.

        x{m,n} becomes m times x and a rule for up to n - m more, which is x and the rule for one less, or nothing;
        without a maximum that rule is x and itself, or nothing.
        """
        least, most = counts
        if item == len(elements):
            raise self._source.refuse("expecting preceding item to */+/?/{", place)
        times = most or least or 1
        if weight * times > MOST_REPETITIONS:
            raise self._source.refuse(TOO_MANY_RULES, place)
        one = elements[item:]
        further = 1 if most is None else most - least
        if len(one) * (least + further) + self._size > MOST_ELEMENTS:
            self._grow(len(one) * (least + further))
        del elements[item:]
        elements.extend(one * least)
        following: int | None = None
        for _ in range(further):
            number = self._new_rule(place)
            if most is None:
                following = number
            rest = [] if following is None else [_element(RULE, following)]
            self._define(number, one + array("Q", [*rest, _ALTERNATIVE, _END]))
            following = number
        if following is not None:
            elements.append(_element(RULE, following))
        return weight * times

    def _literal(self, elements: Elements) -> None:
        source = self._source
        source.take('"')
        while not source.take('"'):
            plain = source.match(_PLAIN)
            if plain:
                elements.extend(_element(CHARACTER, ord(c)) for c in plain)
            else:
                elements.append(_element(CHARACTER, self._character()))

    def _set(self, elements: Elements) -> None:
        source = self._source
        source.take("[")
        kind = NOT_CHARACTER if source.take("^") else CHARACTER
        while not source.take("]"):
            elements.append(_element(kind, self._character()))
            kind = ALSO
            if source.peek() == "-" and source.peek(1) != "]":
                source.take("-")
                elements.append(_element(UPPER, self._character()))

    def _character(self) -> int:
        """One character of a literal or set, escaped or not."""
        source = self._source
        place = source.at
        c = source.next()
        if c != "\\":
            return ord(c)
        escape = source.next()
        if escape in _HEX_DIGITS:
            return source.hexadecimal(_HEX_DIGITS[escape])
        if escape not in _ESCAPED:
            raise source.refuse("unknown escape", place)
        return ord(_ESCAPED[escape])

    def _token(self) -> int:
        """`<[id]>` or `<text>`, the text being that of one token, brackets included; `!` before it for all others."""
        source = self._source
        kind = NOT_TOKEN if source.take("!") else TOKEN
        place = source.at
        source.expect("<")
        if source.take("["):
            number = source.integer("expecting integer", 2**32 - 1)
            source.expect("]")
            source.expect(">")
            return _element(kind, number)
        if self._tokenize is None:
            raise source.refuse("no vocab to parse token", place)
        text = "<" + source.up_to(">")
        tokens = self._tokenize(text)
        if len(tokens) != 1:
            raise source.refuse(f"invalid token '{text}'", place)
        return _element(kind, tokens[0])
