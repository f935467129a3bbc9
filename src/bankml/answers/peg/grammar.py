"""The GBNF text of a parsing expression grammar, b11192's to the byte."""

from bankml.answers.peg import nodes
from bankml.answers.peg.automaton import excluding, including
from bankml.grammar.json_schema import Converter, RuleSet, SchemaBudget, SchemaDocument
from bankml.grammar.json_schema.rules import joined, literal
from bankml.grammar.json_schema.strict import strict_rule


def grammar_text(arena: nodes.Arena, *, lazy: bool) -> str:
    """The grammar of the whole answer; `lazy`: of what the trigger rules match, alone.

    Raises SchemaError or SchemaConversionError for a schema that cannot be converted.
    """
    return _GrammarWriter(arena).text(lazy)


class _GrammarWriter:
    def __init__(self, arena: nodes.Arena) -> None:
        self._arena = arena
        self._rules = RuleSet(SchemaBudget())

    def text(self, lazy: bool) -> str:
        rules = {
            name: node for name, one in self._arena.rules.items() if isinstance(node := self._node(one), nodes.Rule)
        }
        triggers = sorted(name for name, rule in rules.items() if rule.trigger)
        starts = [self._arena.rules[name] for name in triggers] if lazy else [self._arena.root]
        for name in sorted(self._reachable(starts)):
            self._rules.add(name, self._gbnf(rules[name].child))
        self._rules.add("root", joined(triggers) if lazy else self._gbnf(self._arena.root))
        return self._rules.text()

    def _node(self, one: int) -> nodes.Node:
        return self._arena.nodes[one]

    def _reachable(self, starts: list[int]) -> set[str]:
        """The names of the rules that `starts` are or lead to."""
        names, seen, pending = set(), set(starts), list(starts)
        while pending:
            node = self._node(pending.pop())
            if isinstance(node, nodes.Rule):
                names.add(node.name)
            if isinstance(node, nodes.Sequence | nodes.Choice):
                children = node.children
            else:
                children = (node.child,) if isinstance(node, nodes.Parent) else ()
            pending += [child for child in children if child not in seen]
            seen.update(children)
        return {name for name in names if name in self._arena.rules}

    def _gbnf(self, one: int) -> str:
        node = self._node(one)
        match node:
            case nodes.Literal(text):
                return literal(text)
            case nodes.Sequence(children):
                texts = [(child, text) for child in children if (text := self._gbnf(child))]
                return " ".join(self._grouped(child, text, nodes.Choice | nodes.Sequence) for child, text in texts)
            case nodes.Choice(children):
                out = ""
                for child in children:
                    out += (" | " if out else "") + self._grouped(child, self._gbnf(child), nodes.Choice)
                return out
            case nodes.Repeat(child, least, most):
                text = self._grouped(child, self._gbnf(child), nodes.Choice | nodes.Sequence)
                return _repeated(text, least, most)
            case nodes.AnyCharacter():
                return "."
            case nodes.Space():
                return "space"
            case nodes.Characters(pattern, least, most):
                return _repeated(pattern, least, most)
            case nodes.StringContent(quote):
                return rf'( [^{quote}\\] | "\\" ( [{quote}\\/ bfnrt] | "u" [0-9a-fA-F]{{4}} ) )*'
            case nodes.Until(delimiters):
                return excluding(delimiters, f"until-{one}", self._rules) if delimiters else ".*"
            case nodes.Including(_, delimiters):
                return including(delimiters, f"ac-{one}", self._rules)
            case nodes.Schema(_, name, nodes.StrictSchema(schema)):
                return strict_rule(schema, self._rules, name)
            case nodes.Schema(_, name, document) if isinstance(document, SchemaDocument):
                converter = Converter(document, self._rules)
                made = converter.add_root("" if name == "root" else name)
                converter.check()
                return made
            case nodes.Rule(name) | nodes.RuleRef(name):
                return name
            case nodes.Tag(_, child) | nodes.Atomic(child):
                return self._gbnf(child)
            case nodes.Gbnf(_, grammar):
                return grammar
        return ""  # Empty, End, and what only looks ahead

    def _grouped(self, one: int, text: str, kinds: object) -> str:
        node = self._node(one)
        while isinstance(node, nodes.Tag | nodes.Atomic):
            node = self._node(node.child)
        return f"({text})" if isinstance(node, kinds) else text  # type: ignore[arg-type]


def _repeated(item: str, least: int, most: int | None) -> str:
    if (least, most) == (0, 1):
        return f"{item}?"
    if most is None and least in (0, 1):
        return item + ("+" if least else "*")
    if least == most:
        return item if least == 1 else f"{item}{{{least}}}"
    return f"{item}{{{least},{'' if most is None else most}}}"
