"""JSON schemas to GBNF: the reference's text to the byte, and refusals that cost little."""

import json
import time
import tracemalloc
from pathlib import Path

import pytest

from bankml.api.reading.json_body import read_json
from bankml.errors import RequestError
from bankml.grammar.json_schema import json_schema_to_grammar
from bankml.grammar.json_schema.json_text import json_text

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "grammar" / "schemas.json").read_text("utf-8"))


def made(text: str) -> dict[str, str]:
    try:
        return {"grammar": json_schema_to_grammar(read_json(text.encode()))}
    except RequestError as error:
        return {"error": str(error)}


@pytest.mark.parametrize("text", RECORDED)
def test_the_grammar_or_the_refusal_is_the_reference_s(text):
    assert made(text) == RECORDED[text]


def test_there_are_enough_of_them():
    refused = [text for text, answer in RECORDED.items() if "error" in answer]
    assert len(RECORDED) > 200
    assert len(refused) > 30


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"minLength": 3, "maxLength": 2}, "#: minLength must not be greater than maxLength, but got 3 and 2"),
        ({"items": {"items": {}, "minItems": 2, "maxItems": 1}}, "#/items: minItems must not be greater than maxItems"),
        ({"maxLength": 2**31}, "#: maxLength must be a non-negative integer"),
        ({"minLength": 2**32}, "#: minLength must be a non-negative integer"),
        ({"type": "integer", "maximum": 1e19}, "#: maximum must be within 64 bits"),
        ({"type": "integer", "exclusiveMinimum": 2**63 - 1}, "#: exclusiveMinimum must be within 64 bits"),
        ({"allOf": [{"$ref": "#/a"}], "a": {"$ref": "#/a"}}, "#/a: $ref leads back to itself within allOf"),
    ],
)
def test_what_only_we_refuse(schema, why):
    with pytest.raises(RequestError, match="JSON schema conversion failed:") as refused:
        json_schema_to_grammar(schema)
    assert why in str(refused.value)


def test_a_character_that_is_repeated_stays_whole():
    assert '(["é"]|"é"{2})' not in json_schema_to_grammar({"pattern": "^é{2}$"})
    assert '"\\"" ("é"{2,2}) "\\""' in json_schema_to_grammar({"pattern": "^é{2}$"})


def nested(depth, around, inner):
    for _ in range(depth):
        inner = around(inner)
    return inner


TOO_LARGE = {
    "types within types": lambda: nested(
        60, lambda s: {"type": ["object", "array", "object"], "properties": {"a": s}, "items": s}, {}
    ),
    "deep": lambda: nested(3000, lambda s: {"anyOf": [s]}, {}),
    "a chain of references": lambda: {"$ref": "#/d/0", "d": {str(i): {"$ref": f"#/d/{i + 1}"} for i in range(5000)}},
    "allOf of many": lambda: {"allOf": [{"$ref": "#/d"}] * 999, "d": {"properties": {f"p{i}": {} for i in range(999)}}},
    "enums of many": lambda: {"allOf": [{"$ref": "#/d"}] * 999, "d": {"enum": ["x" * 1000] * 1000}},
    "properties": lambda: {"properties": {f"p{i}": {"type": "string"} for i in range(60000)}},
    "names of one kind": lambda: {"properties": {"é" * (i + 1): {"const": i} for i in range(2000)}},
    "long names": lambda: nested(50, lambda s: {"properties": {"a" * 100_000: s, "b": s}}, {}),
    "a long name": lambda: {"properties": {"a" * 3_000_000: {}}, "additionalProperties": True},
    "names that others must not have": lambda: {
        "properties": {"a" * 3000 + str(i): {} for i in range(500)},
        "additionalProperties": True,
    },
    "a long pattern": lambda: {"pattern": "^" + "a?" * 2_000_000 + "$"},
    "patterns": lambda: {"properties": {f"p{i}": {"pattern": "^" + "(a|b)?" * 1000 + "$"} for i in range(3000)}},
    "patterns let through": lambda: {"items": [{"pattern": "^" + "(a|b){2}" * 300 + "\\d$"}] * 3000},
    "alternatives": lambda: {"anyOf": [{"type": "integer", "minimum": i} for i in range(150_000)]},
    "numbers": lambda: {"const": [0.1 + i for i in range(150_000)]},
    "types": lambda: {"type": ["object"] * 3000, **{f"k{i}": 1 for i in range(3000)}},
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_schema_built_to_blow_up_is_refused_at_once(name):
    schema = TOO_LARGE[name]()
    begun = time.process_time()
    with pytest.raises(RequestError, match=r"too large|nested deeper"):
        json_schema_to_grammar(schema)
    assert time.process_time() - begun < 20  # below one here; a slower machine is no failure


@pytest.mark.parametrize(
    "name", ["types within types", "names that others must not have", "a long pattern", "long names"]
)
def test_nor_does_it_cost_much_memory(name):
    schema = TOO_LARGE[name]()
    tracemalloc.start()
    try:
        with pytest.raises(RequestError):
            json_schema_to_grammar(schema)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_a_large_schema_is_no_attack():
    schema = {"type": "object", "properties": {f"property_{i}": {"type": "string"} for i in range(3000)}}
    assert json_schema_to_grammar(schema).count("\n") > 6000


def test_numbers_are_written_as_the_request_wrote_them():
    assert (
        json_text(read_json(b"[2.0, 2, -0.0, 1e2, 18446744073709551616]"))
        == "[2.0,2,-0.0,100.0,1.8446744073709552e+19]"
    )
