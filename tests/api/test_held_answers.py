"""Chat answers that are held to JSON: their content is the value alone, whole and streamed, and so is what is
hashed."""

import pytest

from bankml.api.routes import NativeApplication
from bankml.receipt.receipt import sha256_hex
from tests.api.api_toys import ask, toy_library, toy_resident, user
from tests.grammar.answer_cases import TEMPLATES

FENCED = '```json\n{"a": ["\\u00e9", 1]}\n```'
VALUE = '{"a": ["\\u00e9", 1]}'


def application(says, template="plain"):
    """A model that says what it is told, held to nothing: what the grammar does is tested in its own room."""
    model = toy_resident(says, template=TEMPLATES[template])
    model.toy_template = model.template
    model.with_format = lambda sampler, form, budget: sampler
    return NativeApplication(toy_library(model))


def answer(says, **fields):
    reply = ask(application(says), body=user("Hi", **{"response_format": {"type": "json_object"}} | fields))
    assert reply.status == 200
    if not fields.get("stream"):
        return reply.json["choices"][0]["message"]["content"], reply.json["bankml_receipt"]
    texts = [choice["delta"].get("content") or "" for event in reply.events for choice in event.get("choices", ())]
    return texts, reply.events[-1]["bankml_receipt"]


def test_the_content_is_the_value_alone():
    content, receipt = answer(FENCED)
    assert content == VALUE
    assert receipt["response_sha256"] == sha256_hex(VALUE.encode())
    assert receipt["completion_tokens"] == len(FENCED) + 1, "every token counts, and the end"


def test_a_stream_sends_what_the_value_grows_by():
    texts, receipt = answer(FENCED, stream=True)
    assert "".join(texts) == VALUE
    assert "\\u00e9" in texts, "an escape sequence comes whole"
    assert receipt["response_sha256"] == sha256_hex(VALUE.encode())


def test_a_value_that_is_cut_is_told_so_far():
    assert answer(FENCED, max_tokens=14)[0] == '{"a": '
    assert answer(FENCED, max_tokens=18)[0] == '{"a": ["'


def test_an_answer_without_a_value_is_told_as_it_stands():
    content, receipt = answer(FENCED, max_tokens=5)
    assert content == "```js"
    assert receipt["response_sha256"] == sha256_hex(b"```js")
    texts, receipt = answer(FENCED, max_tokens=5, stream=True)
    assert "".join(texts) == ""
    assert receipt["response_sha256"] == sha256_hex(b"")


def test_a_stop_string_counts_in_the_text_not_in_the_value():
    assert answer(FENCED, stop="u00")[0] == '{"a": ["'
    assert answer(FENCED, stop="son")[0] == "```j"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"json_schema": {"type": "frob"}}, "JSON schema error at #: unrecognized type frob"),
        ({"json_schema": {}, "grammar": 'root ::= "x"'}, "Cannot use both json_schema and grammar"),
        (
            {"response_format": {"type": "xml"}},
            'response_format type must be one of "text" or "json_object", but got: xml',
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_computed(fields, why):
    reply = ask(application("x"), body=user("Hi", **fields))
    assert reply.status == 400
    assert why in reply.error["message"]
