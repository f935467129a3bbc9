"""Schemas of our own, as the text of a request: what b11192 makes of them is recorded in tests/recordings/grammar."""
# ruff: noqa: E501 (a case a line)

import json


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


SIMPLE = [
    {}, {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {"description": "any"},
    {"type": ["string", "null", "integer"]}, {"type": None, "minLength": 3}, {"type": ""},
    {"const": 2.0}, {"const": {"b": [1, 2.50, "x"], "a": None}}, {"enum": ["red", 1, 1.0, None, True, 'a"b\\c\n\x01']},
    {"oneOf": [{"type": "null"}, {"const": "é"}]}, {"anyOf": [{"type": "boolean"}, {"anyOf": [{"type": "null"}]}]},
]  # fmt: skip

BOUNDS = [
    {"minimum": 0}, {"minimum": 1}, {"minimum": 4}, {"minimum": 10}, {"minimum": 25}, {"minimum": 1000},
    {"minimum": -3}, {"minimum": -321}, {"maximum": 0}, {"maximum": 7}, {"maximum": 44}, {"maximum": -6},
    {"maximum": -1234}, {"minimum": 0, "maximum": 120}, {"minimum": -5, "maximum": 30},
    {"minimum": -300, "maximum": -17},
    {"minimum": 5, "maximum": 3}, {"minimum": 50, "maximum": 3}, {"minimum": 100, "maximum": 100},
    {"minimum": 123, "maximum": 45678}, {"exclusiveMinimum": 1.5, "exclusiveMaximum": 100.2},
    {"exclusiveMinimum": 0, "maximum": 9.9}, {"minimum": 10**18}, {"maximum": -(10**17)}, {"maximum": 2**63 - 1},
    {"minimum": -(2**63)}, {"minimum": -(2**63) + 1}, {"minimum": "1"}, {"minimum": True},
]  # fmt: skip

STRINGS = [
    {"minLength": 2}, {"maxLength": 0}, {"minLength": 1, "maxLength": 1}, {"maxLength": 1},
    {"minLength": 3, "maxLength": 9},
    {"minLength": 0}, {"minLength": -1}, {"minLength": 1.0}, {"minLength": 1}, {"maxLength": 2**31 - 1},
    {"format": "date"}, {"format": "time"}, {"format": "date-time"}, {"format": "uuid"}, {"format": "uuid4"},
    {"format": "uuid6"}, {"format": "email"}, {"format": 3},
]  # fmt: skip

PATTERNS = [
    "^a$", "^(a$", "^a)$", "^[a-z]+$", "^[a-z$", "^a{2}$", "^a{2,}b{,3}c{1,1}d{0,1}e{0}$", "^(ab){2,3}(ab){4}(c){1}$",
    "^a|b$", "^\\d$", "^\\.\\[x\\]\\{$", '^.\\n\\x41"$', "abc", "^$", "^", "^*$", "^a**$", "^(?:ab)?$", "^(?=a)$",
    "^a{x}$",
    "^a{1,2,3}$", "^{2}$", "^a{$", "^]$", "^}$", "^a\\$", "^[\\d]$", "^[\\]a\\-]$", "^a^b$", "^(.{3})+$", "^a.b.$",
    "^[é]+é$",
    "^a{2147483647}$", "^a{3,2147483647}$", "^a{99999999999}$", "^a{-1,}$", "^((((a))))$", "^abc+$", "^ab.c$",
    "^(a|b|)c$",
    '^"q"$', "^a\tb\n$", "^a{ 2 x}$", "^()*$", "^[]$", "^[^]]$", "^a{0}{2}$", "^\\-\\\\$",
    "^\\u00e9\\U0001F600\\u00g0$",
    "^\\x4$", "^(?:$", "^(?$", "^" + "(" * 100 + "a" + ")" * 100 + "$", "^" + "(" * 101 + "a" + ")" * 101 + "$",
]  # fmt: skip

ARRAYS = [
    {"type": "array"}, {"items": {}}, {"items": {"type": "string"}, "minItems": 1, "maxItems": 1},
    {"items": {"type": "integer"}, "minItems": 0, "maxItems": 0}, {"type": "array", "minItems": 2},
    {"items": {}, "maxItems": 3}, {"items": {"type": "null"}, "minItems": 2, "maxItems": 5}, {"items": []},
    {"prefixItems": [{"type": "string"}, {"type": "integer", "minimum": 3}]}, {"items": None}, {"items": True},
    {"items": {"type": "null"}, "prefixItems": [{}], "maxItems": 1},
    {"type": "array", "items": {"const": 1}, "minItems": "1"},
]  # fmt: skip

OBJECTS = [
    {"type": "object"}, {"properties": {}}, {"additionalProperties": False},
    {"additionalProperties": {"type": "string"}},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"], "additionalProperties": True},
    {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["a", "c"]},
    {"properties": {"a": {}, "b": {}}, "required": "a"},
    {"properties": {"and": {}, "also": {}, "é": {}, "a\"]b": {}}, "additionalProperties": {"type": "null"}},
    {"properties": {"": {}, "x": {}}, "additionalProperties": True},
    {"properties": {"*": {"type": "null"}, "x": {}}},
    {"properties": {"*": {"const": 1}, "x": {}}, "additionalProperties": True},
    {"properties": {"a b": {"type": "string"}, "a!b": {"maxLength": 3}, "a-b": {"type": "integer"}, "string": {"const": 1}}},
    {"properties": {"kv": {"type": "string"}, "a": {"properties": {"kv": {"type": "integer"}}}, "a-kv": {"const": 2}}},
    {"type": ["object", "array"], "properties": {"a": {"type": ["string", "null"]}}, "items": {"type": "integer"}},
]  # fmt: skip

REFERENCES = [
    {"$defs": {"n": {"properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
    {"properties": {"a": {"$ref": "#/definitions/x y"}}, "definitions": {"x y": {"items": {"$ref": "#/definitions/x y"}}}},
    {"$ref": "#/a/1", "a": [{}, {"type": "null"}]}, {"$ref": "#/a/7", "a": [{}]}, {"$ref": "#/a/x", "a": [{}]},
    {"$ref": "#/a/-0", "a": [{"type": "null"}]}, {"$ref": "#/a/-1", "a": [{}]},
    {"$ref": "#/a/ +0z", "a": [{"const": 0}]},
    {"$ref": 5}, {"$ref": "#"}, {"$ref": "#/"}, {"$ref": "#/x"}, {"$ref": "https://example.com/schema.json"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
]  # fmt: skip

ALL_OF = [
    {"allOf": [{"properties": {"x": {"type": "null"}}, "required": ["x"]}, {"properties": {"y": {"maxLength": 4}}}]},
    {
        "allOf": [{"$ref": "#/$defs/a"}, {"anyOf": [{"properties": {"z": {}}}, {"properties": {"x": {"type": "null"}}}]}],
        "$defs": {"a": {"properties": {"x": {"type": "string"}}, "required": ["x"]}},
    },
    {"allOf": [{"enum": ["a", "b", "é"]}, {"enum": ["b", "é", "c"]}]}, {"allOf": [{"enum": [1]}, {"enum": [2]}]},
    {"type": "string", "allOf": [{"enum": ["z", "a"]}]}, {"type": "object", "allOf": [{"properties": {"a": {}}}] * 2},
    {"allOf": []}, {"allOf": 3},
]  # fmt: skip

REFUSED = [
    {"type": []}, {"type": 5}, {"type": ["string", 5]}, {"type": "frob"}, {"enum": []}, {"enum": 3}, {"anyOf": []},
    {"oneOf": {}}, {"properties": []}, {"properties": {"a": {"items": [5]}}}, {"additionalProperties": 5},
    {"pattern": 1},
    5, None, [1], "x", True,
]  # fmt: skip

AS_TEXT = [
    '{"type": "string", "a": 1, "type": "null"}',
    '{"properties": {"b": {}, "a": {}, "b": {"type": "null"}}}',
    '{"const": [1e22, 9.7747e20, 18446744073709551615, 18446744073709551616, -9223372036854775809, 1e15, 123456789012345.6]}',
    '{"const": [0.0001, 0.00001, -0.0, 0.0, 1e300, 5e-324, 0.1, 100.0, 1E2, 2.50, 1.7976931348623157e308, 2.2250738585072014e-308]}',
    '{"enum": ["\\u00e9", "\\ud83d\\ude00", "\\/", "\\u007f", "\\u001f\\b\\f"]}',
]  # fmt: skip

SCHEMAS = [
    *map(_text, SIMPLE),
    *(_text({"type": "integer"} | bounds) for bounds in BOUNDS),
    *(_text({"type": "string"} | limits) for limits in STRINGS),
    *map(_text, STRINGS),
    *(_text({"pattern": pattern}) for pattern in PATTERNS),
    *(_text({"properties": {"a": {"pattern": pattern}, "b": {"pattern": "^x(b.){2}$"}}}) for pattern in PATTERNS),
    *map(_text, ARRAYS),
    *map(_text, OBJECTS),
    *map(_text, REFERENCES),
    *map(_text, ALL_OF),
    *map(_text, REFUSED),
    *AS_TEXT,
]
