"""The keywords of JSON schemas: which say nothing of a value, which apply to what type, and which no grammar holds."""

from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]

ANNOTATIONS = frozenset((
    "$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
    "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "discriminator",
    "strict", "name",
))  # fmt: skip
"""Keywords that allow any value."""

KEYWORDS_OF = {
    "object": frozenset(
        [
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "minProperties",
            "maxProperties",
            "propertyNames",
        ]
    ),
    "array": frozenset(["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
    "string": frozenset(["pattern", "format", "minLength", "maxLength"]),
    "number": frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    "integer": frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
}  # fmt: skip

NEVER_ENFORCED = frozenset((
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "contains", "minContains",
    "maxContains", "unevaluatedItems", "unevaluatedProperties", "additionalItems", "$dynamicRef", "$recursiveRef",
))  # fmt: skip

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(\.{_LABEL}){{0,8}}"
_WORD = "[0-9A-Fa-f]{1,4}"

FORMAT_PATTERNS = {
    "email": rf"^[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+)*@{_HOST}$",
    "hostname": rf"^{_HOST}$",
    "ipv4": rf"^{_OCTET}(\.{_OCTET}){{3}}$",
    "ipv6": rf"^({_WORD}:){{7}}{_WORD}$",
    "duration": r"^P([0-9]{1,4}W|[0-9]{1,4}Y([0-9]{1,2}M)?([0-9]{1,3}D)?|[0-9]{1,3}D(T[0-9]{1,2}H)?|T[0-9]{1,4}[HMS])$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+$",
}
"""Formats as patterns; each matches valid texts only, though not every valid one."""


def merged(first: Schema, second: Schema) -> Schema:
    """One schema for the values that both allow. Raises ValueError naming a keyword that both have."""
    whole = dict(first)
    for key, value in second.items():
        if key in ANNOTATIONS or key not in whole or whole[key] == value:
            whole.setdefault(key, value)
        elif key == "properties":
            if any(name in whole[key] and whole[key][name] != one for name, one in value.items()):
                raise ValueError("two schemas for one property")
            whole[key] = {**whole[key], **value}
        elif key == "required":
            whole[key] = list(dict.fromkeys([*whole[key], *value]))
        elif key == "additionalProperties":
            whole[key] = False
        else:
            raise ValueError(f"'{key}' is there twice")
    return whole


def are_exclusive(schemas: Sequence[Schema]) -> bool:
    """Whether no value is allowed by two of `schemas`, as far as their types, listed values or one property show."""
    seen: list[frozenset[str]] = []
    for schema in schemas:
        kinds = schema.get("type") if isinstance(schema, dict) else None
        if isinstance(kinds, str):
            seen.append(frozenset({kinds}))
        elif isinstance(kinds, list):
            seen.append(frozenset(kinds))
        else:
            break
    numbers = frozenset({"number", "integer"})
    types = [one | numbers if one & numbers else one for one in seen]
    if len(types) == len(schemas) and sum(map(len, types)) == len(frozenset().union(*types)):
        return True
    tags = [_tags(schema) for schema in schemas]
    return any(all(name in one for one in tags) and _disjoint([one[name] for one in tags]) for name in tags[0])


def _disjoint(sets: Sequence[set[str]]) -> bool:
    return sum(map(len, sets)) == len(set().union(*sets))


def _tags(schema: Schema) -> dict[str, set[str]]:
    """The values that a required property may have, for each property that lists them; "" for the value itself."""
    found: dict[str, set[str]] = {}
    if not isinstance(schema, dict):
        return found
    if listed := _values(schema):
        found[""] = listed
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return found
    for name in schema.get("required", []):
        if isinstance(properties.get(name), dict) and (listed := _values(properties[name])):
            found[name] = listed
    return found


def _values(schema: Schema) -> set[str]:
    if "const" in schema:
        return {repr(schema["const"])}
    return {repr(one) for one in schema["enum"]} if isinstance(schema.get("enum"), list) else set()
