"""A parsing expression grammar as a program for `machine`: nodes that only matter to grammars' texts are left out."""

import re
from dataclasses import dataclass
from enum import IntEnum

from bankml.answers.peg import nodes


class OpCode(IntEnum):
    EMPTY = 0
    END = 1
    LITERAL = 2
    SEQUENCE = 3
    CHOICE = 4
    REPEAT = 5
    AHEAD = 6
    NOT_AHEAD = 7
    ANY = 8
    SPACE = 9
    CHARACTERS = 10
    STRING = 11
    UNTIL = 12
    TAG = 13
    ATOMIC = 14
    FAIL = 15


@dataclass(eq=False, slots=True)
class Op:
    """One operation. `search` finds the first delimiter of an UNTIL, or what a class of characters matches; `tails` are
    beginnings of delimiters, of which the longest has `longest_tail` characters."""

    code: int
    children: tuple["Op", ...] = ()
    text: str = ""
    least: int = 0
    most: int = -1
    search: re.Pattern[str] | None = None
    tails: frozenset[str] = frozenset()
    longest_tail: int = 0


STRING_PLAIN = {quote: re.compile(rf"[^{quote}\\]*+", re.DOTALL) for quote in "\"'"}
ESCAPE = {quote: re.compile(rf"\\(?:[{quote}\\/bfnrt]|u[0-9a-fA-F]{{4}})") for quote in "\"'"}
ESCAPE_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")


def compiled(arena: nodes.Arena, named_rules: str = "") -> Op:
    """The operation of the whole answer. Rules whose names begin with `named_rules` ("" for none) are tags too."""
    return _Compiler(arena, named_rules).op(arena.root)


class _Compiler:
    def __init__(self, arena: nodes.Arena, named_rules: str) -> None:
        self._arena = arena
        self._named_rules = named_rules
        self._ops: dict[int, Op] = {}

    def op(self, one: int) -> Op:
        node = self._arena.nodes[one]
        while self._only_for_grammars(node):
            one = node.child  # type: ignore[union-attr]
            node = self._arena.nodes[one]
        if one not in self._ops:
            op = self._ops[one] = _shell(node)
            if isinstance(node, nodes.Sequence | nodes.Choice):
                op.children = tuple(map(self.op, node.children))
                op.code = op.code if op.children else OpCode.EMPTY if op.code == OpCode.SEQUENCE else OpCode.FAIL
            elif isinstance(node, nodes.Parent):
                op.children = (self.op(node.child),)
        return self._ops[one]

    def _only_for_grammars(self, node: nodes.Node) -> bool:
        if isinstance(node, nodes.Rule):
            return not self._named_rules or not node.name.startswith(self._named_rules)
        return isinstance(node, nodes.Schema | nodes.Gbnf | nodes.Including)


def _shell(node: nodes.Node) -> Op:
    """The operation without its children."""
    match node:
        case nodes.End():
            return Op(OpCode.END)
        case nodes.Literal(text):
            return Op(OpCode.LITERAL, text=text)
        case nodes.Sequence():
            return Op(OpCode.SEQUENCE)
        case nodes.Choice():
            return Op(OpCode.CHOICE)
        case nodes.Repeat(_, least, most):
            return Op(OpCode.REPEAT, least=least, most=-1 if most is None else most)
        case nodes.Ahead():
            return Op(OpCode.AHEAD)
        case nodes.NotAhead():
            return Op(OpCode.NOT_AHEAD)
        case nodes.AnyCharacter():
            return Op(OpCode.ANY)
        case nodes.Space():
            return Op(OpCode.SPACE, search=re.compile(r"[ \t\n\v\f\r]*+"))
        case nodes.Characters(pattern, least, most):
            return Op(OpCode.CHARACTERS, least=least, most=-1 if most is None else most, search=re.compile(pattern))
        case nodes.StringContent(delimiter):
            return Op(OpCode.STRING, text=delimiter, search=STRING_PLAIN[delimiter])
        case nodes.Until(delimiters):
            return _until(delimiters)
        case nodes.Tag(tag):
            return Op(OpCode.TAG, text=tag)
        case nodes.Rule(name):
            return Op(OpCode.TAG, text=name)
        case nodes.Atomic():
            return Op(OpCode.ATOMIC)
    return Op(OpCode.EMPTY)


def _until(delimiters: tuple[str, ...]) -> Op:
    texts = [one for one in delimiters if one]
    if not texts:
        return Op(OpCode.UNTIL)
    tails = frozenset(one[:size] for one in texts for size in range(1, len(one)))
    search = re.compile("|".join(re.escape(one) for one in sorted(texts, key=len)))
    return Op(OpCode.UNTIL, search=search, tails=tails, longest_tail=max(map(len, texts)) - 1)
