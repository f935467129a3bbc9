"""What of a schema llama.cpp b11192's conversion drops: the keywords that its grammar does not hold."""

from collections.abc import Iterator
from typing import Any

from bankml.grammar.json_schema.budget import SchemaBudget
from bankml.grammar.json_schema.patterns import Invalid, Unsupported, pattern_rule
from bankml.grammar.json_schema.rules import RuleSet
from bankml.grammar.json_schema.strict.keywords import KEYWORDS_OF, NEVER_ENFORCED

Schema = dict[str, Any]

ASSERTIONS = NEVER_ENFORCED.union(*KEYWORDS_OF.values())
FORMATS = ("date", "time", "date-time", "uuid", "uuid1", "uuid2", "uuid3", "uuid4", "uuid5")

ENFORCED = {
    "number": frozenset[str](),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "object": frozenset({"properties", "additionalProperties"}),
}

EMPTY_COUNTS = ("not", "contains")
"""Keywords that assert something with the empty schema too."""

MOST_LISTED = 64
"""Paths that a response lists."""


def not_enforced(schema: object) -> tuple[str, ...]:
    """The JSON pointers of the keywords that are dropped, at most MOST_LISTED. `schema` has been converted, so that
    it is valid and not too large."""
    found: list[str] = []
    for path in _dropped(schema, "#", schema, set()):
        found.append(path)
        if len(found) == MOST_LISTED:
            break
    return tuple(found)


def _dropped(schema: object, path: str, root: object, seen: set[str]) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    given = {key for key, value in schema.items() if key in ASSERTIONS and value not in (None, {}, [])}
    given |= {key for key in EMPTY_COUNTS if schema.get(key) == {}}
    given -= {key for key in given if schema[key] is False and key in ("uniqueItems", "unevaluatedProperties")}
    ref = schema.get("$ref")
    if ref is not None:
        yield from _at(path, given)
        if isinstance(ref, str) and ref not in seen:
            seen.add(ref)
            yield from _dropped(_resolved(ref, root), ref, root, seen)
        return
    for key in ("oneOf", "anyOf"):
        if isinstance(schema.get(key), list):
            yield from _at(path, given)
            yield from _children(schema[key], f"{path}/{key}", root, seen)
            return
    if "const" in schema or "enum" in schema:
        yield from _at(path, given)
        return
    merges = isinstance(schema.get("allOf"), list) and schema.get("type") in (None, "object", "string")
    if merges and "properties" not in schema:
        yield from _at(path, given)
        yield from _children(schema["allOf"], f"{path}/allOf", root, seen)
        return
    yield from _of_types(schema, given, path, root, seen)


def _of_types(schema: Schema, given: set[str], path: str, root: object, seen: set[str]) -> Iterator[str]:
    types = schema.get("type") or next((one for one, keys in KEYWORDS_OF.items() if keys & given), None)
    held = {"required"} if isinstance(schema.get("properties"), dict) else set()
    for one in types if isinstance(types, list) else [types]:
        held |= _string_keywords(schema) if one == "string" else ENFORCED.get(str(one), frozenset())
    yield from _at(path, given - held)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        missing = [name for name in schema.get("required") or [] if isinstance(name, str) and name not in properties]
        yield from (f"{path}/required/{name}" for name in missing)
        for name, one in properties.items():
            yield from _dropped(one, f"{path}/properties/{name}", root, seen)
    for key in ("items", "prefixItems", "additionalProperties"):
        inner = schema.get(key)
        if isinstance(inner, list):
            yield from _children(inner, f"{path}/{key}", root, seen)
        else:
            yield from _dropped(inner, f"{path}/{key}", root, seen)


def _string_keywords(schema: Schema) -> set[str]:
    """A pattern that is supported is all that counts of a string's keywords, then a format, then the lengths."""
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and pattern:
        try:
            pattern_rule(pattern, "pattern", RuleSet(SchemaBudget()))
        except (Unsupported, Invalid):
            return set()
        return {"pattern"}
    return {"format"} if schema.get("format") in FORMATS else {"minLength", "maxLength"}


def _children(schemas: list[object], path: str, root: object, seen: set[str]) -> Iterator[str]:
    for i, one in enumerate(schemas):
        yield from _dropped(one, f"{path}/{i}", root, seen)


def _at(path: str, keys: set[str]) -> Iterator[str]:
    yield from (f"{path}/{key}" for key in sorted(keys))


def _resolved(ref: str, root: object) -> object:
    target = root
    for name in ref[2:].split("/"):
        target = target.get(name) if isinstance(target, dict) else None
    return target
