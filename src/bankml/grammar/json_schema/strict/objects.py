"""Objects of strict schemas: named properties in the schema's order, then keys that match a pattern, then others."""

from __future__ import annotations

import re
from typing import Any, NoReturn, Protocol

from bankml.grammar.json_schema.objects import OTHERS, key_and_value, object_rule, other_keys
from bankml.grammar.json_schema.rules import RuleSet

Schema = dict[str, Any]


class SchemaVisitor(Protocol):
    """The converter, as far as objects need it."""

    rules: RuleSet

    def visit(self, schema: object, path: str, name: str) -> str: ...

    def pattern(self, pattern: object, path: str) -> str: ...

    def count(self, given: Schema, key: str, path: str) -> int | None: ...

    def refuse(self, path: str, keyword: str, why: str = ...) -> NoReturn: ...


def object_text(converter: SchemaVisitor, given: Schema, path: str, name: str) -> str:
    """The text of the rule for an object. Raises SchemaError."""
    rules = converter.rules
    properties, required, additional = _parts(converter, given, path)
    patterns = given.get("patternProperties", {})
    if not isinstance(patterns, dict):
        converter.refuse(f"{path}/patternProperties", "patternProperties", "must be an object")
    for pattern in patterns:
        if clash := next((one for one in properties if _matches(pattern, one)), None):
            converter.refuse(
                f"{path}/patternProperties", "patternProperties", f"also matches the property '{clash[:80]}'"
            )
    pairs: dict[str, str] = {}
    for one, schema in properties.items():
        value = converter.visit(schema, f"{path}/properties/{one}", f"{name}-{one}")
        pairs[one] = rules.add(f"{name}-{one}-kv", key_and_value(one, value))
    _check_counts(converter, given, path, len(required), None if patterns or additional else len(properties))
    optional = [one for one in properties if one not in required]
    if others := _others(converter, given, patterns, additional, list(properties), path, name):
        pairs[OTHERS] = rules.add(f"{name}-other-kv", others)
        optional.append(OTHERS)
    if OTHERS in properties:
        converter.refuse(f"{path}/properties", "properties", f"cannot have the name '{OTHERS}'")
    return object_rule([one for one in properties if one in required], optional, pairs, name, rules)


def _parts(converter: SchemaVisitor, given: Schema, path: str) -> tuple[dict[str, object], set[str], object]:
    """The properties, with those that are required but not described; the required names; and what other properties
    must be (False: there are none). A schema with properties needs no others, so that none are allowed then."""
    properties = given.get("properties", {})
    required = given.get("required", [])
    if not isinstance(properties, dict):
        converter.refuse(f"{path}/properties", "properties", "must be an object")
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        converter.refuse(f"{path}/required", "required", "must be an array of strings")
    additional = given.get("additionalProperties", not properties and "patternProperties" not in given)
    named = dict(properties)
    for one in required:
        if one not in named:
            if additional is False and given.get("additionalProperties") is False:
                converter.refuse(f"{path}/required", "required", f"names '{one[:80]}', which is not allowed")
            named[one] = additional if isinstance(additional, dict) else True
    if additional is True and named:
        additional = False
    return named, set(required), additional


def _others(
    converter: SchemaVisitor,
    given: Schema,
    patterns: dict[str, object],
    additional: object,
    named: list[str],
    path: str,
    name: str,
) -> str:
    """A rule's text for a further property, "" where there is none."""
    rules, texts = converter.rules, []
    for i, (pattern, schema) in enumerate(patterns.items()):
        key = rules.add(f"{name}-pattern-{i}-k", converter.pattern(pattern, f"{path}/patternProperties/{pattern[:80]}"))
        value = converter.visit(schema, f"{path}/patternProperties/{pattern[:80]}", f"{name}-pattern-{i}")
        texts.append(f'{key} space ":" space {value}')
    if additional is not False and not patterns:
        value = converter.visit(additional, f"{path}/additionalProperties", f"{name}-additional")
        texts.append(f'{_key(converter, given, named, path, name)} space ":" space {value}')
    return f"({' | '.join(texts)})" if texts else ""


def _key(converter: SchemaVisitor, given: Schema, named: list[str], path: str, name: str) -> str:
    rules, names = converter.rules, given.get("propertyNames")
    if names is not None:
        if named or not isinstance(names, dict) or not names.keys() <= {"pattern", "type"} or "pattern" not in names:
            converter.refuse(f"{path}/propertyNames", "propertyNames")
        return rules.add(f"{name}-k", converter.pattern(names["pattern"], f"{path}/propertyNames/pattern"))
    return rules.add(f"{name}-k", other_keys(named, rules.add_fixed("char"))) if named else rules.add_fixed("string")


def _check_counts(converter: SchemaVisitor, given: Schema, path: str, least: int, most: int | None) -> None:
    """Limits of the number of properties are enforced where every object of the other keywords is within them."""
    low, high = converter.count(given, "minProperties", path), converter.count(given, "maxProperties", path)
    if low is not None and low > least:
        converter.refuse(f"{path}/minProperties", "minProperties", "is enforced by required properties only")
    if high is not None and (most is None or most > high):
        converter.refuse(f"{path}/maxProperties", "maxProperties", "is enforced by the properties that are named only")


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False
