"""A JSON value to a schema, in the subset that b11192 supports, with its messages for the rest.

The first match decides what a schema is: $ref, oneOf or anyOf, several types, const, enum, then the type; without
one the other keywords decide.
"""

import math
import re
from collections.abc import Callable
from typing import NoReturn, cast

from bankml.grammar.json_schema.budget import SchemaBudget
from bankml.grammar.json_schema.nodes import (
    AllOf,
    AnyOf,
    Anything,
    Array,
    Const,
    Enum,
    Format,
    Integer,
    Node,
    Object,
    Property,
    Ref,
    SchemaDocument,
    Simple,
    String,
    Tuple,
)
from bankml.grammar.json_schema.problems import SchemaError

Keywords = dict[str, object]

INT32_MAX = 2**31 - 1
INT64 = range(-(2**63), 2**63)
UUID = re.compile(r"uuid[1-5]?", re.ASCII)
LEADING_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?)([0-9]+)")


def read_schema(schema: object, budget: SchemaBudget) -> SchemaDocument:
    """Raises SchemaError, with the path in the schema."""
    reader = _Reader(schema, budget)
    root = reader.node(schema, "#", 1)
    return SchemaDocument(root, reader.targets)


def _fail(path: str, why: str) -> NoReturn:
    raise SchemaError(f"JSON schema error at {path}: {why}")


class _Reader:
    def __init__(self, root: object, budget: SchemaBudget) -> None:
        self._root = root
        self._budget = budget
        self._begun: set[str] = set()
        self.targets: dict[str, Node] = {}

    def node(self, schema: object, path: str, depth: int) -> Node:
        self._budget.step()
        self._budget.text(len(path))
        self._budget.level(depth)
        if not isinstance(schema, dict):
            _fail(path, "schema must be an object")
        if "$ref" in schema:
            return self._ref(schema["$ref"], path, depth)
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return AnyOf(self._alternatives(schema[key], f"{path}/{key}", depth))
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._of_several_types(schema, kind, path, depth)
        if "const" in schema:
            return Const(schema["const"])
        if "enum" in schema:
            values = schema["enum"]
            if not isinstance(values, list) or not values:
                _fail(path, "enum must be a non-empty array")
            return Enum(tuple(values))
        if not isinstance(kind, str | None):
            _fail(path, "type must be a string or an array of strings")
        return self._of_type(schema, kind, path, depth) if kind else self._of_no_type(schema, path, depth)

    def _of_type(self, schema: Keywords, kind: str, path: str, depth: int) -> Node:
        if kind in ("null", "boolean", "number"):
            return Simple(kind)  # type: ignore[arg-type]
        if kind == "integer":
            return _integer(schema, path)
        if kind == "array":
            return self._array(schema, path, depth)
        if "allOf" in schema and (kind == "string" or (kind == "object" and not _has_properties(schema))):
            return AllOf(self._alternatives(schema["allOf"], f"{path}/allOf", depth))
        if kind == "object":
            return self._object(schema, path, depth)
        if kind == "string":
            return _string(schema, path)
        _fail(path, f"unrecognized type {kind}")

    def _of_no_type(self, schema: Keywords, path: str, depth: int) -> Node:
        if _has_properties(schema):
            return self._object(schema, path, depth)
        if "allOf" in schema:
            return AllOf(self._alternatives(schema["allOf"], f"{path}/allOf", depth))
        if "items" in schema or "prefixItems" in schema:
            return self._array(schema, path, depth)
        if any(key in schema for key in ("pattern", "minLength", "maxLength")) or _format(schema, path):
            return _string(schema, path)
        return Anything()

    def _of_several_types(self, schema: Keywords, kinds: list[object], path: str, depth: int) -> AnyOf:
        """Each type with all the other keywords."""
        if not kinds:
            _fail(path, "type must not be empty")
        children = []
        for i, kind in enumerate(kinds):
            self._budget.step(len(schema))
            children.append(self.node(schema | {"type": kind}, f"{path}/type/{i}", depth + 1))
        return AnyOf(tuple(children))

    def _alternatives(self, schemas: object, path: str, depth: int) -> tuple[Node, ...]:
        if not isinstance(schemas, list):
            _fail(path, "must be an array of schemas")
        if not schemas:
            _fail(path, "must not be empty")
        return tuple(self.node(one, f"{path}/{i}", depth + 1) for i, one in enumerate(schemas))

    def _ref(self, ref: object, path: str, depth: int) -> Ref:
        if not isinstance(ref, str):
            _fail(path, "$ref must be a string")
        if not ref.startswith("#/"):
            _fail(path, f"unsupported $ref {ref}, only references into the same document are supported")
        if ref not in self._begun:
            self._begun.add(ref)
            self.targets[ref] = self.node(self._resolved(ref, path), ref, depth + 1)
        return Ref(ref)

    def _resolved(self, ref: str, path: str) -> object:
        """The value that `ref` names. Names are taken literally: "~1" and "%25" have no meaning, as in b11192."""
        target = self._root
        for name in ref[2:].split("/"):
            self._budget.step()
            if isinstance(target, dict) and name in target:
                target = target[name]
            elif isinstance(target, list):
                index = _index(name)
                if index is None or index >= len(target):
                    _fail(path, f"cannot resolve $ref {ref}, {name} is out of range")
                target = target[index]
            else:
                _fail(path, f"cannot resolve $ref {ref}, {name} not found")
        return target

    def _object(self, schema: Keywords, path: str, depth: int) -> Object:
        named = schema.get("required")
        required = {name for name in named if isinstance(name, str)} if isinstance(named, list) else set()
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            _fail(path, "properties must be an object")
        read = tuple(
            Property(name, self.node(one, f"{path}/properties/{name}", depth + 1), name in required)
            for name, one in properties.items()
        )
        return Object(read, self._additional(schema, path, depth))

    def _additional(self, schema: Keywords, path: str, depth: int) -> Node | None:
        """Without the keyword, anything is allowed if no properties are named, and nothing otherwise."""
        additional = schema.get("additionalProperties", "properties" not in schema)
        if isinstance(additional, bool):
            return Anything() if additional else None
        if not isinstance(additional, dict):
            _fail(path, "additionalProperties must be a boolean or a schema")
        return self.node(additional, f"{path}/additionalProperties", depth + 1)

    def _array(self, schema: Keywords, path: str, depth: int) -> Node:
        key = next((key for key in ("items", "prefixItems") if key in schema), None)
        items = schema[key] if key else None
        if isinstance(items, list):
            return Tuple(tuple(self.node(one, f"{path}/{key}/{i}", depth + 1) for i, one in enumerate(items)))
        item = self.node(items, f"{path}/{key}", depth + 1) if key else Anything()
        return Array(item, *_counts(schema, "minItems", "maxItems", path))


def _has_properties(schema: Keywords) -> bool:
    return "properties" in schema or schema.get("additionalProperties", True) is not True


def _string(schema: Keywords, path: str) -> String:
    pattern = schema.get("pattern", "")
    if not isinstance(pattern, str):
        _fail(path, "pattern must be a string")
    return String(pattern, _format(schema, path), *_counts(schema, "minLength", "maxLength", path))


def _format(schema: Keywords, path: str) -> Format:
    value = schema.get("format", "")
    if not isinstance(value, str):
        _fail(path, "format must be a string")
    if UUID.fullmatch(value):
        return "uuid"
    return cast(Format, value) if value in ("date", "time", "date-time") else ""


def _counts(schema: Keywords, least: str, most: str, path: str) -> tuple[int, int | None]:
    """The two limits of a length; only bankML refuses an empty range."""
    low, high = _count(schema, least, path), _count(schema, most, path)
    if low is not None and high is not None and low > high:
        _fail(path, f"{least} must not be greater than {most}, but got {low} and {high}")
    return low or 0, high


def _count(schema: Keywords, key: str, path: str) -> int | None:
    if key not in schema:
        return None
    value = schema[key]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INT32_MAX:
        _fail(path, f"{key} must be a non-negative integer")
    return None if key.startswith("max") and value == INT32_MAX else value


def _integer(schema: Keywords, path: str) -> Integer:
    """A bound between two integers is rounded inwards. One beyond 64 bits is ignored."""
    minimum = _bound(schema, ("minimum", math.ceil, 0), ("exclusiveMinimum", math.floor, 1), path)
    maximum = _bound(schema, ("maximum", math.floor, 0), ("exclusiveMaximum", math.ceil, -1), path)
    return Integer(None if minimum == INT64[0] else minimum, None if maximum == INT64[-1] else maximum)


Bound = tuple[str, Callable[[float], int], int]


def _bound(schema: Keywords, included: Bound, excluded: Bound, path: str) -> int | None:
    found = next((one for one in (included, excluded) if one[0] in schema), None)
    if found is None:
        return None
    key, rounded, beyond = found
    value = schema[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail(path, f"{key} must be a number")
    bound = (rounded(value) if isinstance(value, float) else value) + beyond
    if bound not in INT64:
        _fail(path, f"{key} must be within 64 bits")
    return bound


def _index(name: str) -> int | None:
    """The number at the beginning of `name`, as C parses it: "2x" is 2; a negative one is always out of range."""
    number = LEADING_NUMBER.match(name)
    if not number or len(number[2]) > 20:
        return None
    return None if number[1] == "-" and int(number[2]) else int(number[2])
