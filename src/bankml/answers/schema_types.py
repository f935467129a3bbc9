"""What types of value a schema allows: whether an argument is text as it stands, or JSON."""

from bankml.grammar.json_schema import nodes

TYPES = frozenset({"null", "boolean", "number", "integer", "string", "array", "object"})


def may_be_string(node: nodes.Node, document: nodes.SchemaDocument, seen: frozenset[str] = frozenset()) -> bool:
    """A schema of which nothing is known is not one of strings; a reference in a circle is not either."""
    match node:
        case nodes.String():
            return True
        case nodes.Const(value):
            return isinstance(value, str)
        case nodes.Enum(values):
            return any(isinstance(value, str) for value in values)
        case nodes.Ref(ref):
            return ref not in seen and may_be_string(document.targets[ref], document, seen | {ref})
        case nodes.AnyOf(children):
            return any(may_be_string(child, document, seen) for child in children)
        case nodes.AllOf(children):
            known = [child for child in children if not isinstance(child, nodes.Anything)]
            return bool(known) and all(may_be_string(child, document, seen) for child in known)
    return False


def value_types(node: nodes.Node, document: nodes.SchemaDocument, seen: frozenset[str] = frozenset()) -> frozenset[str]:
    match node:
        case nodes.Anything():
            return TYPES
        case nodes.Simple(kind):
            return frozenset({"number", "integer"}) if kind == "number" else frozenset({kind})
        case nodes.Integer():
            return frozenset({"integer"})
        case nodes.String():
            return frozenset({"string"})
        case nodes.Array() | nodes.Tuple():
            return frozenset({"array"})
        case nodes.Object():
            return frozenset({"object"})
        case nodes.Const(value):
            return frozenset({_type_of(value)})
        case nodes.Enum(values):
            return frozenset(map(_type_of, values))
        case nodes.Ref(ref):
            return frozenset() if ref in seen else value_types(document.targets[ref], document, seen | {ref})
        case nodes.AnyOf(children):
            return frozenset().union(*(value_types(child, document, seen) for child in children))
        case nodes.AllOf(children):
            return TYPES.intersection(*(value_types(child, document, seen) for child in children))


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    for kind, types in (("boolean", bool), ("integer", int), ("number", float), ("string", str), ("array", list)):
        if isinstance(value, types):
            return kind
    return "object"
