"""Builds a parsing expression grammar.

A grammar's text names some rules after node ids (`until-12`), so nodes have to be made in the order in which the
reference makes them: statement by statement, and within one, as its compiler evaluates: the right operand of `+` and
`|` before the left one, both before the node that joins them; `<<` and lists from left to right. A Part therefore is
made when `let` is called, or when it becomes part of one that is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from bankml.answers.peg import nodes
from bankml.grammar.json_schema.nodes import SchemaDocument

NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9-]+")


class Part:
    """A node that has been made, or is to be. `a + b`: in sequence; `a << b`: the same with white space between;
    `a | b`: a choice. A string stands for a literal."""

    __slots__ = ("_builder", "_id", "_make")

    def __init__(self, builder: Builder, make: Callable[[], int]) -> None:
        self._builder = builder
        self._make = make
        self._id = -1

    @property
    def id(self) -> int:
        """The node's id; makes the node."""
        if self._id < 0:
            self._id = self._make()
        return self._id

    def __add__(self, other: Part | str) -> Part:
        return self._joined(other, self._builder.in_sequence)

    def __radd__(self, other: str) -> Part:
        return self._prefixed(other, self._builder.in_sequence)

    def __or__(self, other: Part | str) -> Part:
        return self._joined(other, self._builder.in_choice)

    def __lshift__(self, other: Part | str) -> Part:
        builder = self._builder

        def make() -> int:
            first = self.id
            second = builder.literal(other).id if isinstance(other, str) else other.id
            return builder.in_sequence([first, builder.space().id, second])

        return Part(builder, make)

    def __rlshift__(self, other: str) -> Part:
        builder = self._builder

        def make() -> int:
            second, first = self.id, builder.literal(other).id
            return builder.in_sequence([first, builder.space().id, second])

        return Part(builder, make)

    def _joined(self, other: Part | str, join: Callable[[Iterable[int]], int]) -> Part:
        def make() -> int:
            if isinstance(other, str):
                first, second = self.id, self._builder.literal(other).id
            else:
                second = other.id
                first = self.id
            return join([first, second])

        return Part(self._builder, make)

    def _prefixed(self, other: str, join: Callable[[Iterable[int]], int]) -> Part:
        def make() -> int:
            second = self.id
            return join([self._builder.literal(other).id, second])

        return Part(self._builder, make)


class Builder:
    """Makes Parts, and an Arena of them."""

    def __init__(self) -> None:
        self._nodes: list[nodes.Node] = []
        self._rules: dict[str, int] = {}

    def let(self, part: Part) -> Part:
        """Makes `part` now: what the reference gives a name."""
        part.id  # noqa: B018 (makes it)
        return part

    def build(self, root: Part) -> nodes.Arena:
        root_id = root.id
        return nodes.Arena(
            tuple(self._resolved(node) for node in self._nodes), dict(self._rules), self._target(root_id)
        )

    # ---- making nodes at once

    def add(self, node: nodes.Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def in_sequence(self, ids: Iterable[int]) -> int:
        """A sequence within it becomes part of it."""
        return self.add(nodes.Sequence(self._flat(ids, nodes.Sequence)))

    def in_choice(self, ids: Iterable[int]) -> int:
        return self.add(nodes.Choice(self._flat(ids, nodes.Choice)))

    def _flat(self, ids: Iterable[int], kind: type[nodes.Sequence | nodes.Choice]) -> tuple[int, ...]:
        out: list[int] = []
        for one in ids:
            node = self._nodes[one]
            out += node.children if isinstance(node, nodes.Sequence | nodes.Choice) and type(node) is kind else (one,)
        return tuple(out)

    def _target(self, one: int) -> int:
        node = self._nodes[one]
        return self._rules[node.name] if isinstance(node, nodes.RuleRef) else one

    def _resolved(self, node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.Sequence | nodes.Choice):
            return replace(node, children=tuple(map(self._target, node.children)))
        if isinstance(node, nodes.Parent):
            return replace(node, child=self._target(node.child))
        return node

    # ---- parts

    def _leaf(self, node: nodes.Node) -> Part:
        return Part(self, lambda: self.add(node))

    def _around(self, part: Part, node: Callable[[int], nodes.Node]) -> Part:
        return Part(self, lambda: self.add(node(part.id)))

    def empty(self) -> Part:
        return self._leaf(nodes.Empty())

    def end(self) -> Part:
        return self._leaf(nodes.End())

    def deferred(self, make: Callable[[], Part]) -> Part:
        """What `make` makes, made as late as any part."""
        return Part(self, lambda: make().id)

    def literal(self, text: str) -> Part:
        return self._leaf(nodes.Literal(text))

    def sequence(self, *parts: Part) -> Part:
        return Part(self, lambda: self.in_sequence([part.id for part in parts]))

    def choice(self, *parts: Part) -> Part:
        return Part(self, lambda: self.in_choice([part.id for part in parts]))

    def repeat(self, part: Part, least: int, most: int | None = None) -> Part:
        return self._around(part, lambda child: nodes.Repeat(child, least, most))

    def optional(self, part: Part) -> Part:
        return self.repeat(part, 0, 1)

    def ahead(self, part: Part) -> Part:
        return self._around(part, nodes.Ahead)

    def not_ahead(self, part: Part) -> Part:
        return self._around(part, nodes.NotAhead)

    def any_character(self) -> Part:
        return self._leaf(nodes.AnyCharacter())

    def space(self) -> Part:
        return self._leaf(nodes.Space())

    def characters(self, pattern: str, least: int = 1, most: int | None = None) -> Part:
        return self._leaf(nodes.Characters(pattern, least, most))

    def string_content(self, delimiter: str) -> Part:
        return self._leaf(nodes.StringContent(delimiter))

    def until(self, *delimiters: str) -> Part:
        return self._leaf(nodes.Until(delimiters))

    def rest(self) -> Part:
        return self._leaf(nodes.Until(()))

    def tag(self, tag: str, part: Part) -> Part:
        return self._around(part, lambda child: nodes.Tag(tag, child))

    def atomic(self, part: Part) -> Part:
        return self._around(part, nodes.Atomic)

    def atomic_tag(self, tag: str, part: Part) -> Part:
        return self.atomic(self.tag(tag, part))

    def gbnf(self, part: Part, grammar: str) -> Part:
        return self._around(part, lambda child: nodes.Gbnf(child, grammar))

    def including(self, part: Part, *delimiters: str) -> Part:
        return self._around(part, lambda child: nodes.Including(child, delimiters))

    def schema(self, part: Part, name: str, document: SchemaDocument | nodes.StrictSchema) -> Part:
        return self._around(part, lambda child: nodes.Schema(child, name, document))

    def ref(self, name: str) -> Part:
        return self._leaf(nodes.RuleRef(name))

    def rule(self, name: str, part: Part, *, trigger: bool = False) -> Part:
        """A rule, and a reference to it."""

        def make() -> int:
            clean = NOT_IN_A_NAME.sub("-", name)
            self._rules[clean] = self.add(nodes.Rule(clean, part.id, trigger))
            return self.add(nodes.RuleRef(clean))

        return Part(self, make)

    def trigger_rule(self, name: str, part: Part) -> Part:
        return self.rule(name, part, trigger=True)

    def recursive_rule(self, name: str, body: Callable[[], Part]) -> Part:
        """A rule whose `body` may refer to it; made once."""

        def make() -> int:
            if name not in self._rules:
                placeholder = self.any_character().id
                self._rules[name] = self.add(nodes.Rule(name, placeholder, False))
                made = body().id
                self._rules[name] = self.add(nodes.Rule(name, made, False))
            return self.add(nodes.RuleRef(name))

        return Part(self, make)

    def node(self, part: Part) -> nodes.Node:
        """The node of a part; makes it."""
        return self._nodes[part.id]
