"""`POST /completion` held to a grammar or a schema, and that no grammar and no schema breaks the server, on either
route: each is an answer or a refusal, and soon."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bankml.api.routes import NativeApplication
from bankml.receipt.check import check
from tests.api.api_toys import CHAT, ask, toy_library, toy_resident, user
from tests.engine.engine_toys import hashing
from tests.grammar.answer_cases import TEMPLATES

LONGEST = 2.0
"""Seconds of processor time that a refusal or a short answer may take, whatever it is held to."""


def application(says=hashing):
    """A model that says what it is told as far as it is allowed to."""
    model = toy_resident(says, template=TEMPLATES["plain"])
    model.toy_template = model.template
    return NativeApplication(toy_library(model))


def complete(says="Oslo.", **fields):
    body = json.dumps({"prompt": "A:", "n_predict": 12, **fields}).encode()
    reply = ask(application(says), "/completion", body)
    if reply.status == 200:
        checked = check(body, reply.body)
        assert checked.problems == ()
        return checked.text, reply
    return None, reply


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"grammar": 'root ::= "Os" [0-9]{2}'}, "Os00"),
        ({"grammar": 'root ::= "Oslo" "."?'}, "Oslo."),
        ({"grammar": ""}, "Oslo."),
        ({"grammar": None, "json_schema": {"const": "Oslo."}}, '"Oslo."'),
        ({"grammar": "", "json_schema": {"const": 7}}, "7"),
        ({"json_schema": None}, "Oslo."),
        ({"response_format": {"type": "text"}}, "Oslo."),
    ],
)
def test_the_text_is_the_grammars_as_generated(fields, text, stream):
    said, reply = complete(stream=stream, **fields)
    assert said == text
    last = reply.events[-1] if stream else reply.json
    assert (last["stop_type"], last["tokens_predicted"]) == ("eos", len(text) + 1)
    assert bool(last["generation_settings"]["grammar"]) == bool(fields.get("grammar") or fields.get("json_schema"))


def test_a_schema_that_says_nothing_means_any_object():
    text, _ = complete('{"a":1}', json_schema={})
    assert text == '{"a":1}'


@pytest.mark.parametrize("path", ["/completion", CHAT])
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"grammar": "root ::= ("}, "Failed to initialize samplers: failed to parse grammar"),
        ({"grammar": "root ::= root"}, "left recursion"),
        ({"grammar": ["root"]}, "Field 'grammar': expected a string"),
        ({"json_schema": {"type": "frob"}}, "JSON schema error at #: unrecognized type frob"),
        ({"json_schema": 5}, "schema"),
        ({"json_schema": {}, "grammar": "root ::= [a]"}, "Cannot use both json_schema and grammar"),
        ({"json_schema": {"minLength": 9, "maxLength": 3}}, "minLength"),
    ],
)
def test_what_cannot_be_held_to_is_refused(path, fields, why):
    body = {"prompt": "A:", **fields} if path == "/completion" else user("Hi", **fields)
    reply = ask(application(), path, body)
    assert reply.status == 400 and reply.error["type"] == "invalid_request_error"
    assert why in reply.error["message"]


def test_a_chat_refuses_a_grammar_beside_a_response_format():
    fields = {"response_format": {"type": "json_object"}, "grammar": "root ::= [a]"}
    reply = ask(application(), CHAT, user("Hi", **fields))
    assert (reply.status, reply.error["message"]) == (400, "Cannot use both json_schema and grammar")


SIGNS = [
    *'"[](){}*+?|^-\\ \n#<>!.,029azé\0', "::=", "1000", "root", "x", '"a"', "[a-z]", "\\x41", "\\u", "<end>", "<[65]>",
    '""', "x ::= ", "root ::= ",
]  # fmt: skip
GRAMMARS = st.one_of(
    st.text(max_size=20),
    st.lists(st.sampled_from(SIGNS), max_size=30).map("".join),
    st.lists(st.sampled_from(SIGNS), max_size=30).map(lambda signs: "root ::= x\nx ::= " + "".join(signs)),
    st.recursive(
        st.sampled_from(['"a"', '"ab"', "[a-z]", "[^a]", ".", '""', "root", "x", "<end>", "!<end>"]),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(" ".join),
            st.tuples(inner, inner).map(" | ".join),
            st.tuples(inner, st.sampled_from("*+?")).map(lambda both: "({}){}".format(*both)),
            st.tuples(inner, st.integers(0, 3), st.integers(2, 9) | st.integers(0, 2001)).map(
                lambda all: "({}){{{},{}}}".format(*all)
            ),
        ),
        max_leaves=12,
    ).map(lambda body: f"root ::= {body}\nx ::= root | [0-9]"),
)

KINDS = ["object", "array", "string", "number", "integer", "boolean", "null", "frob"]
WORDS = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        ["^a$", "^(a|b){2,40}$", "^.*$", "^[^a-z]+\\d$", "^(((a*)*)*)*$", "date-time", "uuid", "#", "#/$defs/a"]
    ),
)
NUMBERS = st.one_of(st.integers(-5, 40), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS)


def around(inner):
    """Schemas with `inner` in them, most of them of a shape that a schema has."""
    named = st.dictionaries(st.sampled_from(["a", "b", "é", ""]), inner, max_size=3)
    several = st.lists(inner, max_size=3)
    parts = {
        "type": st.one_of(st.sampled_from(KINDS), st.lists(st.sampled_from(KINDS), max_size=3)),
        "properties": named, "$defs": named, "items": inner, "prefixItems": several, "additionalProperties": inner,
        "anyOf": several, "oneOf": several, "allOf": several, "$ref": WORDS, "pattern": WORDS, "format": WORDS,
        "required": st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), "enum": st.lists(VALUES, max_size=4),
        "const": VALUES, "not": inner, "if": inner,
    }  # fmt: skip
    counts = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum")
    parts |= dict.fromkeys(counts, NUMBERS)
    return st.one_of(st.fixed_dictionaries({}, optional=parts), several, st.dictionaries(WORDS, inner, max_size=2))


SCHEMAS = st.recursive(st.one_of(VALUES, st.just({})), around, max_leaves=10)
WANTED = st.one_of(
    GRAMMARS.map(lambda text: {"grammar": text}),
    SCHEMAS.map(lambda schema: {"json_schema": schema}),
    SCHEMAS.map(lambda schema: {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}),
    SCHEMAS.map(lambda schema: {"response_format": {"type": "json_object", "schema": schema}}),
    st.tuples(SCHEMAS, GRAMMARS).map(lambda both: {"json_schema": both[0], "grammar": both[1]}),
)
NESTED = 'root ::= x{2000}\nx ::= (("a" | "a"?) x?)*'
DEEP = {"anyOf": [{"$ref": "#/$defs/a"}] * 30, "$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "maxItems": 2000}}}


@settings(deadline=None, max_examples=120)
@given(WANTED, st.booleans())
@example({"grammar": NESTED}, False)
@example({"grammar": "root ::= " + "(" * 5000}, False)
@example({"grammar": 'root ::= ("a"* "a"*){2000}'}, True)
@example({"json_schema": DEEP}, False)
@example({"json_schema": {"type": "string", "maxLength": 2**31 - 2}}, False)
@example({"json_schema": {"type": "string", "pattern": "^" + "(a?" * 60 + ")" * 60 + "{2000}$"}}, False)
def test_whatever_is_asked_for_is_answered_or_refused_soon(wanted, stream):
    for path, asked in ((CHAT, {"messages": user("Hi")["messages"]}), ("/completion", {"prompt": "A:"})):
        body = json.dumps({**asked, "max_tokens": 8, "stream": stream, **wanted}).encode()
        before = time.thread_time()
        reply = ask(application(), path, body)
        assert time.thread_time() - before < LONGEST
        assert reply.status in (200, 400) and reply.finished
        if reply.status == 400:
            assert reply.error["message"] and reply.error["type"] == "invalid_request_error"
        elif not any("error" in event for event in reply.events):
            assert check(body, reply.body).problems == ()
