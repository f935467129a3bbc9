"""Schemas with `strict: true`: whatever the grammar accepts is valid by a validator of JSON schemas, and what no
grammar holds is refused by its keyword and path."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bankml.answers.describe import describe
from bankml.answers.request import FormatRequest
from bankml.errors import RequestError
from bankml.grammar.json_schema.not_enforced import not_enforced
from bankml.grammar.matcher import Grammar, Matcher, vocabulary_tree
from bankml.text.messages import Conversation
from bankml.text.template import ChatTemplate

TEMPLATE, HELLO = ChatTemplate("{{ messages[0].content }}"), Conversation([{"role": "user", "content": "hi"}])
LETTERS = [*(chr(code) for code in range(32, 127) if code != 96), "\n", "é", "€", "🙂"]
# no back-quote: the value may stand in a fence
TREE = vocabulary_tree([letter.encode() for letter in LETTERS] + [b"<end>"], [len(LETTERS)])


def grammar(schema):
    return Grammar.parse(describe(FormatRequest(TEMPLATE, HELLO, schema, strict=True)).grammar)


def walk(parsed, chooser, limit=400):
    """A text of the grammar, letter by letter; None where it has not ended by then. Letters that go on with white space
    or with long texts are taken less often."""
    matcher, text = Matcher(parsed, TREE), []
    while len(text) < limit:
        allowed = [i for i in range(len(LETTERS)) if matcher.allows(i)]
        if matcher.complete and (not allowed or chooser.random() < 0.5):
            return "".join(text)
        closing = [i for i in allowed if LETTERS[i] in '"]},:']
        solid = [i for i in allowed if LETTERS[i] not in " \n"] or allowed
        token = chooser.choice(closing if closing and chooser.random() < 0.4 else solid)
        text.append(LETTERS[token])
        matcher.accept(token)
    return None


def accepts(schema, value):
    """Whether the grammar accepts a JSON text whole."""
    matcher = Matcher(grammar(schema), TREE)
    try:
        matcher.accept_text(value.encode())
    except RequestError:
        return False
    return matcher.complete


ENFORCED = {
    "digits": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
    "unanchored": {"type": "string", "pattern": "[0-9]"},
    "words": {"type": "string", "pattern": r"^[\w.-]+@[\w.-]+$"},
    "not a space": {"type": "string", "pattern": r"^\S+$"},
    "quotes": {"type": "string", "pattern": r'^["\\a]{2}x$'},
    "alternatives": {"type": "string", "pattern": "^(cat|dog)s?$"},
    "number bounds": {"type": "number", "minimum": 5, "maximum": 5},
    "fractions": {"type": "number", "minimum": -1.25, "maximum": 10.5},
    "below zero": {"type": "number", "exclusiveMaximum": 0, "minimum": -0.75},
    "at least": {"type": "number", "exclusiveMinimum": 99.5},
    "integers": {"type": "integer", "minimum": -12, "exclusiveMaximum": 345},
    "integers from": {"type": "integer", "minimum": 37},
    "integers to": {"type": "integer", "maximum": -120},
    "sevens": {"type": "integer", "multipleOf": 7, "minimum": -20, "maximum": 100},
    "cents": {"type": "number", "multipleOf": 0.01},
    "no properties": {"type": "object", "maxProperties": 0, "additionalProperties": False},
    "property names": {"type": "object", "propertyNames": {"pattern": "^x"}},
    "pattern properties": {
        "type": "object", "patternProperties": {"^x[0-9]$": {"const": 1}}, "additionalProperties": False,
    },
    "email": {"type": "string", "format": "email"},
    "ipv4": {"type": "string", "format": "ipv4"},
    "required without a property": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a", "zz"]},
    "an empty name": {
        "type": "object", "properties": {"": {"const": 2}}, "required": [""], "additionalProperties": False,
    },
    "unique": {"type": "array", "items": {"enum": ["a", "b", 3]}, "uniqueItems": True, "minItems": 1},
    "types": {"type": ["string", "null"], "maxLength": 2},
    "a discriminated union": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "null"}}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]},
        ]
    },
    "allOf": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
            {"properties": {"b": {"type": "null"}}, "required": ["b"]},
        ]
    },
    "recursion": {
        "$defs": {"n": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
                        "required": ["next"], "additionalProperties": False}},
        "$ref": "#/$defs/n",
    },
    "tuples": {
        "type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "minItems": 2, "maxItems": 2,
    },
    "a model": {
        "title": "Person", "type": "object", "additionalProperties": False, "required": ["name", "age", "tags"],
        "properties": {
            "name": {"type": "string", "description": "x", "minLength": 1},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "tags": {"type": "array", "items": {"enum": ["x", "y"]}, "maxItems": 3},
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("schema", ENFORCED.values(), ids=ENFORCED)
def test_what_the_grammar_accepts_is_valid(schema):
    parsed, chooser, ended = grammar(schema), random.Random(1), 0
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    for _ in range(60):
        text = walk(parsed, chooser)
        if text is not None:
            ended += 1
            assert list(validator.iter_errors(json.loads(text))) == [], text
    assert ended > 5


@pytest.mark.parametrize(
    ("schema", "valid"),
    [
        ({"type": "number", "minimum": -1.25, "maximum": 10.5}, ["-1.25", "0", "-0.3", "10.5", "9.99", "10", "10.50"]),
        ({"type": "integer", "minimum": 37}, ["37", "40", "100", "123456"]),
        ({"type": "string", "pattern": "[0-9]"}, ['"a1b"', '"7"']),
        ({"type": "string", "format": "email"}, ['"ann@example.org"']),
        ({"type": "object", "properties": {"a": {}, "b": {}}}, ["{}", '{"a":1}', '{"b": 2}', '{"a":[], "b":{}}']),
        ({"type": "integer", "minimum": -12, "maximum": 12}, [*map(str, range(-12, 13))]),
    ],
)
def test_values_that_are_accepted(schema, valid):
    for value in valid:
        assert accepts(schema, value), value


@given(st.integers(-3000, 3000), st.integers(0, 3000), st.integers(-7000, 7000))
@settings(deadline=None)
def test_integer_ranges_are_exact(low, size, value):
    schema = {"type": "integer", "minimum": low, "maximum": low + size}
    assert accepts(schema, str(value)) == (low <= value <= low + size)


decimals = st.decimals(-50, 50, allow_nan=False, places=3)


@given(decimals, decimals, decimals)
@settings(deadline=None)
def test_number_ranges_are_exact(one, other, value):
    low, high = sorted((one, other))
    schema = {"type": "number", "minimum": float(low), "maximum": float(high)}
    text = format(value, "f")
    negative_zero = text.startswith("-") and value == 0
    assert negative_zero or accepts(schema, text) == (low <= value <= high)


REFUSED = [
    ({"type": "string", "pattern": "^(?=a)b$"}, "'pattern' at #/pattern cannot be enforced: look-ahead"),
    ({"type": "string", "pattern": "a^b"}, "an anchor inside the pattern"),
    ({"type": "string", "pattern": "("}, "is not a supported regular expression"),
    ({"type": "integer", "multipleOf": 7}, "'multipleOf' at #/multipleOf needs a range"),
    ({"type": "array", "contains": {"const": 5}}, "'contains' at #/contains cannot be enforced"),
    ({"not": {}}, "'not' at #/not"),
    ({"properties": {"a": {"if": {}, "then": {"const": 1}}}}, "'if' at #/properties/a/if"),
    ({"type": "object", "minProperties": 2}, "'minProperties' at #/minProperties"),
    ({"type": "object", "patternProperties": {"^a": {}}, "properties": {"ab": {}}}, "also matches the property 'ab'"),
    ({"type": "object", "required": ["x"], "additionalProperties": False}, "names 'x', which is not allowed"),
    ({"type": "string", "format": "regex"}, "'format' at #/format cannot be enforced"),
    ({"type": "string", "pattern": "a", "maxLength": 3}, "'minLength' at #/minLength cannot be enforced together"),
    ({"type": "array", "uniqueItems": True}, "is enforced for the values of an enum only"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "its schemas may allow the same value"),
    ({"$ref": "https://example.org/x"}, "must refer into the same document"),
    ({"$ref": "#/$defs/x"}, "names nothing"),
    ({"type": "frob"}, "must be one or several of object, array"),
    ({"type": "string", "minimum": 3}, "'minimum' at #/minimum does not apply to the type string"),
    ({"type": "integer", "minimum": 5, "maximum": 2}, "leaves no integer"),
    (7, "must be an object"),
]


@pytest.mark.parametrize(("schema", "why"), REFUSED)
def test_what_cannot_be_enforced_is_named(schema, why):
    with pytest.raises(RequestError) as refusal:
        grammar(schema)
    assert refusal.value.message.startswith("strict JSON schema: ") and why in refusal.value.message


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ({"type": "string", "pattern": r"^\d$"}, ["#/pattern"]),
        ({"type": "string", "pattern": "^a$", "maxLength": 3}, ["#/maxLength"]),
        ({"type": "string", "pattern": "^a$"}, []),
        ({"type": "string", "format": "email"}, ["#/format"]),
        ({"type": "string", "format": "date"}, []),
        ({"type": "number", "minimum": 5}, ["#/minimum"]),
        ({"type": "integer", "minimum": 5, "multipleOf": 7}, ["#/multipleOf"]),
        ({"type": "object", "maxProperties": 0}, ["#/maxProperties"]),
        ({"not": {}}, ["#/not"]),
        ({"type": "array", "contains": {}}, ["#/contains"]),
        ({"type": "array", "items": {"type": "number", "maximum": 1}, "uniqueItems": True},
         ["#/uniqueItems", "#/items/maximum"]),
        ({"type": "object", "properties": {"a": {"not": {"const": 1}}}, "required": ["a", "zz"]},
         ["#/required/zz", "#/properties/a/not"]),
        ({"$defs": {"x": {"type": "string", "contains": {"a": 1}}}, "$ref": "#/$defs/x"}, ["#/$defs/x/contains"]),
        ({"anyOf": [{"type": "integer", "multipleOf": 2}, {"const": 1, "minLength": 2}], "minimum": 3},
         ["#/minimum", "#/anyOf/0/multipleOf", "#/anyOf/1/minLength"]),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_what_the_reference_s_conversion_drops(schema, paths):
    assert list(not_enforced(schema)) == paths
