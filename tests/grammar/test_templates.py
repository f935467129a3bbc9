"""A JSON answer behind a chat template: its grammar and its content, as the reference has them."""

import json
from pathlib import Path

import pytest

from bankml.api.reading.constraints import read_chat_constraint
from bankml.errors import RequestError
from bankml.text.template import ChatTemplate
from tests.grammar.answer_cases import CONTINUED, MESSAGES, SCHEMAS, TEMPLATES
from tests.grammar.constraining import constrain, content_stream

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "grammar" / "answers.json").read_text("utf-8"))


def held(template, messages=MESSAGES, **fields):
    return constrain({"messages": messages, **fields}, ChatTemplate(TEMPLATES[template]))


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_grammar_is_the_reference_s(template, schema):
    want = RECORDED[template]["grammars"][schema]
    try:
        made = held(template, json_schema=json.loads(schema))
        assert {"grammar": made.grammar, "generation_prompt": made.opening} == want
    except RequestError as error:
        assert {"error": str(error)} == want


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_answer_that_is_continued(template):
    made = held(template, CONTINUED, json_schema={"type": "object"})
    want = RECORDED[template]["continued"]
    assert {"grammar": made.grammar, "generation_prompt": made.opening} == want


def contents(content, answer):
    """What is told of each beginning of the answer."""
    so_far = content.push("")
    out = [so_far]
    for character in answer:
        so_far += content.push(character)
        out.append(so_far)
    return out


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_content_is_the_value_as_the_reference_tells_it(template):
    """Where the reference gives up (None, or nothing after something), we keep what was told already."""
    made, shape = held(template, json_schema={"type": "object"}), RECORDED[template]
    again = held(template, CONTINUED, json_schema={"type": "object"})
    compared = 0
    for constrained, answers in ((made, shape["answers"]), (again, shape["rest of the continued"])):
        for answer, want in answers.items():
            got = contents(content_stream(constrained), answer)
            for size, one in enumerate(want):
                if one is None or (not one and got[size]):
                    assert size and got[size].startswith(got[size - 1]), (answer, size)
                else:
                    assert got[size] == one, answer[:size]
                    compared += 1
    assert compared > 150


@pytest.mark.parametrize("template", TEMPLATES)
def test_it_does_not_matter_in_what_pieces_an_answer_comes(template):
    made = held(template, json_schema={"type": "object"})
    for answer in RECORDED[template]["answers"]:
        one, by_character = content_stream(made), content_stream(made)
        whole = one.push(answer) + one.finish()
        assert whole == contents(by_character, answer)[-1] + by_character.finish()


def test_deep_answers_are_no_trouble():
    content = content_stream(held("plain", json_schema={}))
    answer = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"
    assert content.push(answer + " and more") + content.finish() == answer


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ({}, None),
        ({"json_schema": None}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {}}, None),
        ({"json_schema": {}}, {"type": "object"}),
        ({"json_schema": {"const": 1}, "response_format": {"type": "text"}}, {"const": 1}),
        ({"response_format": {"type": "json_object"}}, {"type": "object"}),
        ({"response_format": {"type": "json_object", "schema": None}}, {"type": "object"}),
        ({"response_format": {"type": "json_object", "schema": {"const": 2}}}, {"const": 2}),
        ({"json_schema": {"const": 1}, "response_format": {"type": "json_object"}}, {"const": 1}),
        ({"json_schema": {"const": 1}, "response_format": {"type": "json_object", "schema": {}}}, {"type": "object"}),
        ({"response_format": {"type": "json_schema"}}, {"type": "object"}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"const": 3}}}}, {"const": 3}),
        ({"json_schema": {"a": 1}, "response_format": {"type": "json_schema", "json_schema": {}}}, {"type": "object"}),
    ],
)
def test_which_schema_is_meant(fields, schema):
    assert read_chat_constraint(fields).schema == schema


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"grammar": 'root ::= "x"', "json_schema": {}}, "Cannot use both json_schema and grammar"),
        ({"grammar": 'root ::= "x"', "response_format": {"type": "json_object"}}, "Cannot use both"),
        ({"json_schema": True}, "JSON schema error at #: schema must be an object"),
        ({"response_format": {"type": "json_object", "schema": 5}}, "schema must be an object"),
        ({"response_format": {"type": "json_schema", "json_schema": "x"}}, "expected an object with the schema"),
        ({"response_format": "json_object"}, "Field 'response_format': expected an object"),
        ({"grammar": 5}, "Field 'grammar': expected a string"),
    ],
)
def test_what_is_refused(fields, why):
    with pytest.raises(RequestError, match=why):
        held("plain", **fields)


@pytest.mark.parametrize("schema", [1, "{}", True, [], [{"type": "null"}]])
def test_a_schema_that_is_no_object_is_refused_in_the_words_of_its_field(schema):
    with pytest.raises(RequestError, match=r"^Field 'json_schema': \"json_schema\": JSON schema conversion failed:\n"):
        held("plain", json_schema=schema)
    with pytest.raises(RequestError, match=r"^Unable to generate parser for this template"):
        held("plain", response_format={"type": "json_object", "schema": schema})
