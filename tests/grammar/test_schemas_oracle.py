"""Schemas and templates against the reference's own code, live: its test cases, its templates, and random ones."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bankml.api.reading.json_body import read_json
from bankml.errors import BankmlError, RequestError
from bankml.grammar.json_schema import json_schema_to_grammar
from bankml.grammar.json_schema.json_text import json_text
from bankml.text.template import ChatTemplate
from tests.grammar.answer_cases import MESSAGES, TEMPLATES
from tests.grammar.constraining import constrain, content_stream
from tests.grammar.probe import llama_cpp, probe

pytestmark = pytest.mark.oracle

TEXT = r'(?:R"""\((.*?)\)"""|"([^"]*)")'
CASE = re.compile(rf'test\(\{{\s*(SUCCESS|FAILURE),\s*"([^"]*)",\s*{TEXT},\s*{TEXT}', re.S)

thorough = settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def ours(text):
    try:
        return {"grammar": json_schema_to_grammar(read_json(text.encode()))}
    except RequestError as error:
        return {"error": str(error)}


def trimmed(grammar):
    """As the reference's test compares: without the white space that lines begin with, nor that around all."""
    return re.sub(r"(^|\n)[ \t]+", r"\1", grammar.strip(" \n\r\t"))


def test_the_reference_s_own_cases():
    source = (llama_cpp() / "tests" / "test-json-schema-to-grammar.cpp").read_text("utf-8")
    cases = CASE.findall(source)
    assert len(cases) == source.count("    test({") > 60
    for status, name, raw, plain, expected, _ in cases:
        made = ours(raw or plain)
        assert ("grammar" in made) == (status == "SUCCESS"), (name, made)
        if status == "SUCCESS":
            assert trimmed(made["grammar"]) == trimmed(expected), name


names = st.one_of(
    st.sampled_from(["a", "b", "ab", "abc", "kv", "string", "root", "*", "", "a b", "a-b", "é"]), st.text(max_size=5)
)
numbers = st.one_of(st.integers(-1500, 1500), st.integers(-(2**62), 2**62), st.floats(-1e9, 1e9))
counts = st.integers(0, 5)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=5,
)
pieces = [
    "a",
    "bc",
    ".",
    "(",
    ")",
    "(?:",
    "[a-z]",
    "[^\\]é]",
    "|",
    "*",
    "+",
    "?",
    "{2}",
    "{1,3}",
    "{,2}",
    "{2,}",
    "\\.",
    "\\n",
]
patterns = st.lists(st.sampled_from([*pieces, "\\d", "\\x41", '"', "\\\\", "^", "$", "]", "{", "}"]), max_size=9)
types = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])


def keywords(inner):
    """A schema from all keywords at once, sensible or not."""
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(types, types, types, st.lists(types, max_size=2)),
            "properties": st.dictionaries(names, inner, max_size=4),
            "required": st.lists(names, max_size=3),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "items": st.one_of(inner, lists),
            "prefixItems": lists,
            "allOf": lists,
            "minItems": counts,
            "minLength": counts,
            "maxItems": st.integers(5, 8),
            "maxLength": st.integers(5, 8),
            "minimum": numbers,
            "maximum": numbers,
            "format": st.sampled_from(["date", "uuid2", "time", "date-time", "email"]),
        },
    )


rare = st.one_of(
    st.fixed_dictionaries({"const": values}),
    st.fixed_dictionaries({"enum": st.lists(values, max_size=3)}),
    st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/a", "#/$defs/b", "#/$defs/b/items", "#/$defs/c"])}),
    patterns.map(lambda parts: {"pattern": f"^{''.join(parts)}$"}),
    st.fixed_dictionaries({"type": types}),
    st.fixed_dictionaries({"type": st.just("integer"), "exclusiveMinimum": numbers, "exclusiveMaximum": numbers}),
    st.just({}),
)
schemas = st.recursive(
    rare,
    lambda inner: st.one_of(
        keywords(inner),
        st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2), "type": types}),
    ),
    max_leaves=12,
)
documents = st.builds(
    lambda root, a, b: root | {"$defs": {"a": a, "b": b}} if isinstance(root, dict) else root, schemas, schemas, schemas
)


@thorough
@given(documents)
def test_random_schemas(schema):
    text = json.dumps(schema)
    mine = ours(text)
    if "$ref leads back to itself within allOf" in mine.get("error", ""):
        return  # the reference ends there without an answer
    assert mine == probe().ask("schema", text=text)


@thorough
@given(patterns)
def test_random_patterns(parts):
    text = json.dumps({"items": {"pattern": f"^{''.join(parts)}$"}})
    assert ours(text) == probe().ask("schema", text=text)


@thorough
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=50, max_size=50))
def test_random_numbers(values):
    assert json_text(values) == probe().ask("dump", text=json.dumps(values))["text"]


def test_templates_of_many_models():
    """The grammar is the reference's to the byte, or the template is refused: those with a parser of their own."""
    schema, same, refused = '{"properties": {"a": {"type": "integer"}}}', 0, []
    for path in sorted((llama_cpp() / "models" / "templates").glob("*.jinja")):
        source = path.read_text("utf-8")
        try:
            made = constrain(
                {"messages": MESSAGES, "json_schema": json.loads(schema)}, ChatTemplate(source, "<s>", "</s>")
            )
        except BankmlError:
            refused.append(path.stem)
            continue
        asked = {
            "template": source,
            "bos": "<s>",
            "eos": "</s>",
            "messages": MESSAGES,
            "schema": schema,
            "continue": False,
        }
        want = probe().ask("chat", **asked)
        assert (made.grammar, made.opening) == (want["grammar"], want["generation_prompt"]), path.name
        same += 1
    assert same >= 44, refused


spaces = st.sampled_from(["", "", " ", "\n", "\t \n"])
strings = st.lists(st.sampled_from(["a", "é", "\\n", "\\u00e9", '\\"', "😀", "\x01", "\\x", "\\u12g", " "]), max_size=5)
json_texts = st.recursive(
    st.one_of(
        st.sampled_from(["true", "false", "null", "0", "-0", "1.", "-", "007", "1ex", "5-3", "0.25e+7", "1E-05"]),
        strings.map(lambda parts: f'"{"".join(parts)}"'),
        st.integers().map(str),
    ),
    lambda inner: st.one_of(
        st.builds(lambda items, s: f"[{s}{f'{s},'.join(items)}{s}]", st.lists(inner, max_size=3), spaces),
        st.builds(lambda v, s, t: f'{{{s}"k"{t}:{s}{v}{t},"é":{v}{s}}}', inner, spaces, spaces),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(TEMPLATES)),
    st.builds(
        "".join,
        st.tuples(spaces, st.sampled_from(["", "<think>", "<think>\nhm", "<thi"]), st.sampled_from(["", "</think>"])),
    ),
    json_texts,
    st.sampled_from(["{}", "```json {}```", "```json\n{}\n``` ", "```{}", "{} x", "{}\n"]),
)
def test_random_answers(template, head, value, around):
    source = TEMPLATES[template]
    made = constrain({"messages": MESSAGES, "json_schema": {}}, ChatTemplate(source))
    asked = {
        "template": source,
        "bos": "",
        "eos": "",
        "messages": MESSAGES,
        "schema": '{"type": "object"}',
        "continue": False,
    }
    reference = probe().ask("chat", **asked)
    answer, content, got = head + around.replace("{}", value), content_stream(made), ""
    got = content.push("")
    for size in range(len(answer) + 1):
        got += content.push(answer[size - 1]) if size else ""
        fixed = {"parser": reference["parser"], "generation_prompt": reference["generation_prompt"]}
        want = probe().ask("content", text=answer[:size], **fixed)
        if "error" not in want and (want["content"] or want["reasoning"] or not got):
            assert got == want["content"], answer[:size]
