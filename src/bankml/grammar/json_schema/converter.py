"""Schemas to rules: one method per kind, each returning the name of its rule."""

from collections.abc import Iterable, Sequence

from bankml.grammar.json_schema import nodes
from bankml.grammar.json_schema.integers import integer_range
from bankml.grammar.json_schema.json_text import count_values, json_text
from bankml.grammar.json_schema.objects import OTHERS, key_and_value, object_rule, other_keys
from bankml.grammar.json_schema.patterns import Invalid, Unsupported, pattern_rule
from bankml.grammar.json_schema.problems import SchemaConversionError, SchemaError
from bankml.grammar.json_schema.rules import (
    NOT_IN_A_NAME,
    RESERVED,
    RuleSet,
    joined,
    literal,
    repetition,
    separated,
)


class Converter:
    """Converts one document to rules. Raises SchemaError if that exceeds the budget."""

    def __init__(self, document: nodes.SchemaDocument, rules: RuleSet) -> None:
        self._targets = document.targets
        self._root = document.root
        self._rules = rules
        self._resolving: set[str] = set()
        self._problems: list[str] = []
        self._depth = 0

    def add_root(self, name: str = "") -> str:
        """Makes the rules of the document, under `name` ("" is "root"); returns the first one's name."""
        return self._visit(self._root, name)

    def text(self) -> str:
        """The grammar. Raises SchemaConversionError for what turned out not to be valid on the way."""
        self.check()
        return self._rules.text()

    def check(self) -> None:
        """Raises SchemaConversionError for what turned out not to be valid on the way."""
        if self._problems:
            raise SchemaConversionError("JSON schema conversion failed:\n" + "\n".join(self._problems))

    def _visit(self, node: nodes.Node, name: str) -> str:
        self._rules.budget.step()
        self._rules.budget.text(len(name))
        self._depth += 1
        self._rules.budget.level(self._depth)
        try:
            return self._rule(node, name, f"{name}-" if name in RESERVED else name or "root")
        finally:
            self._depth -= 1

    def _rule(self, node: nodes.Node, name: str, rule: str) -> str:
        """`name` is the prefix of inner rules' names, `rule` the name of this one."""
        match node:
            case nodes.Anything():
                return self._rules.add(rule, self._rules.add_fixed("value"))
            case nodes.Ref():
                return self._rules.add(rule, self._target(node.ref))
            case nodes.AnyOf():
                return self._rules.add(rule, self._any_of(node.children, name))
            case nodes.AllOf():
                return self._all_of(node, name, rule)
            case nodes.Const():
                return self._rules.add(rule, self._constant(node.value))
            case nodes.Enum():
                return self._rules.add(rule, f"({joined(map(self._constant, node.values))})")
            case nodes.Simple():
                return self._fixed(rule, node.type)
            case nodes.Integer():
                return self._integer(node, rule)
            case nodes.String():
                return self._string(node, rule)
            case nodes.Array():
                return self._array(node, name, rule)
            case nodes.Tuple():
                items = [self._visit(one, f"{_inner(name)}tuple-{i}") for i, one in enumerate(node.items)]
                return self._rules.add(rule, '"[" space ' + ' "," space '.join(items) + ' space "]"')
            case nodes.Object():
                return self._object(node, name, rule)

    def _fixed(self, rule: str, fixed: str) -> str:
        """One of the fixed rules under its own name; the root is renamed."""
        return self._rules.add_fixed("root" if rule == "root" else fixed, fixed)

    def _constant(self, value: object) -> str:
        self._rules.budget.step(count_values(value))
        text = literal(json_text(value))
        self._rules.budget.text(len(text))
        return text

    def _any_of(self, children: Sequence[nodes.Node], name: str) -> str:
        begin = f"{name}-" if name else "alternative-"
        return joined([self._visit(one, f"{begin}{i}") for i, one in enumerate(children)])

    def _target(self, ref: str) -> str:
        name = "ref" + NOT_IN_A_NAME.sub("-", ref[1:])
        if name in self._rules or ref in self._resolving:
            return name
        self._resolving.add(ref)
        name = self._visit(self._targets[ref], name)
        self._resolving.discard(ref)
        return name

    def _integer(self, node: nodes.Integer, rule: str) -> str:
        if node.minimum is None and node.maximum is None:
            return self._fixed(rule, "integer")
        return self._rules.add(rule, integer_range(node.minimum, node.maximum))

    def _string(self, node: nodes.String, rule: str) -> str:
        if node.pattern:
            return self._pattern(node.pattern, rule)
        if node.format == "uuid":
            return self._fixed(rule, "uuid")
        if node.format:
            return self._rules.add(rule, self._rules.add_fixed(f"{node.format}-string"))
        if node.min_length or node.max_length is not None:
            characters = repetition(self._rules.add_fixed("char"), node.min_length, node.max_length)
            return self._rules.add(rule, rf'"\"" {characters} "\""')
        return self._fixed(rule, "string")

    def _pattern(self, pattern: str, rule: str) -> str:
        mark = self._rules.mark()
        try:
            return pattern_rule(pattern, rule, self._rules)
        except Unsupported:
            self._rules.undo(mark)
            return self._rules.add(rule, self._rules.add_fixed("string"))
        except Invalid as error:
            self._rules.undo(mark)
            self._problems.append(f"Invalid pattern {pattern}: {error}")
            return ""

    def _array(self, node: nodes.Array, name: str, rule: str) -> str:
        if isinstance(node.items, nodes.Anything) and not node.min_items and node.max_items is None:
            return self._fixed(rule, "array")
        item = self._visit(node.items, f"{_inner(name)}item")
        items = separated(item, '"," space', node.min_items, node.max_items)
        return self._rules.add(rule, f'"[" space {items} space "]"')

    def _object(self, node: nodes.Object, name: str, rule: str) -> str:
        if not node.properties and isinstance(node.additional, nodes.Anything):
            return self._rules.add(rule, self._rules.add_fixed("object"))
        properties = [(one.name, one.schema) for one in node.properties]
        required = {one.name for one in node.properties if one.required}
        return self._rules.add(rule, self._properties(properties, required, name, node.additional))

    def _properties(
        self,
        properties: Sequence[tuple[str, nodes.Node]],
        required: set[str],
        name: str,
        additional: nodes.Node | None,
    ) -> str:
        """A rule's text for an object. A property may occur twice (by allOf): it is then required twice."""
        pairs: dict[str, str] = {}
        begin = _inner(name)
        for one, schema in properties:
            value = self._visit(schema, begin + one)
            pairs[one] = self._rules.add(f"{begin}{one}-kv", key_and_value(one, value))
        named = [one for one, _ in properties]
        optional = [one for one in named if one not in required]
        if additional is not None:
            pairs[OTHERS] = self._other_pair(additional, named, f"{begin}additional")
            optional.append(OTHERS)
        return object_rule([one for one in named if one in required], optional, pairs, begin, self._rules)

    def _other_pair(self, additional: nodes.Node, named: Sequence[str], name: str) -> str:
        if isinstance(additional, nodes.Anything):
            value = self._rules.add_fixed("value")
        else:
            value = self._visit(additional, f"{name}-value")
        if named:
            self._rules.budget.step(sum(map(len, named)))
            key = self._rules.add(f"{name}-k", other_keys(named, self._rules.add_fixed("char")))
        else:
            key = self._rules.add_fixed("string")
        return self._rules.add(f"{name}-kv", f'{key} ":" space {value}')

    def _all_of(self, node: nodes.AllOf, name: str, rule: str) -> str:
        """The properties of all parts together, or the values that every part lists."""
        properties: list[tuple[str, nodes.Node]] = []
        required: set[str] = set()
        listed: dict[str, int] = {}
        for part, is_required in self._parts(node):
            if isinstance(part, nodes.Object):
                self._rules.budget.step(len(part.properties))
                properties += [(one.name, one.schema) for one in part.properties]
                required |= {one.name for one in part.properties if is_required}
            elif isinstance(part, nodes.Enum):
                for value in map(self._constant, part.values):
                    listed[value] = listed.get(value, 0) + 1
        everywhere = [value for value in listed if listed[value] == len(node.children)]
        if everywhere:
            return self._rules.add(rule, f"({joined(sorted(everywhere, key=_bytes))})")
        return self._rules.add(rule, self._properties(properties, required, name, None))

    def _parts(self, node: nodes.AllOf) -> Iterable[tuple[nodes.Node, bool]]:
        """The parts of allOf, and whether each is required; alternatives within it are optional."""
        for child in node.children:
            if isinstance(child, nodes.AnyOf):
                yield from ((self._meant(one), False) for one in child.children)
            else:
                yield self._meant(child), True

    def _meant(self, node: nodes.Node) -> nodes.Node:
        """`node`, or what it refers to. Raises SchemaError for circular references."""
        seen: set[str] = set()
        while isinstance(node, nodes.Ref):
            self._rules.budget.step()
            if node.ref in seen:
                raise SchemaError(f"JSON schema error at {node.ref}: $ref leads back to itself within allOf")
            seen.add(node.ref)
            node = self._targets[node.ref]
        return node


def _inner(name: str) -> str:
    return f"{name}-" if name else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
