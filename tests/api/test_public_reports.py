"""What broke clients of other servers, by the requests they sent: what is not tested beside its subject."""

import json

import pytest

from tests.api.api_toys import CHAT, ask, toy_application, user

JSON = {"messages": [{"role": "user", "content": "Give JSON."}], "max_tokens": 24, "temperature": 0}


def test_every_event_of_a_chat_stream_has_a_choice_with_a_delta():
    for event in ask(toy_application(), body=user("Hi", stream=True)).events:
        assert isinstance(event["choices"][0]["delta"], dict)


def test_every_event_of_a_completion_stream_has_a_choice_with_a_text():
    for event in ask(toy_application(), "/v1/completions", {"prompt": "A:", "stream": True}).events:
        assert isinstance(event["choices"][0]["text"], str)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "pattern"),
        ({"type": "string", "pattern": "[0-9]"}, "pattern"),
        ({"type": "string", "pattern": r"^[\w.-]+@[\w.-]+$"}, "pattern"),
        ({"type": "string", "pattern": "^(?=a)b$"}, "pattern"),
        ({"type": "number", "minimum": 5}, "minimum"),
        ({"type": "integer", "multipleOf": 7}, "multipleOf"),
        ({"type": "object", "maxProperties": 0}, "maxProperties"),
        ({"type": "array", "contains": {"const": 5}}, "contains"),
        ({"type": "object", "propertyNames": {"pattern": "^x"}}, "propertyNames"),
        ({"not": {}}, "not"),
        ({"type": "object", "patternProperties": {"^x": {"const": 1}}}, "patternProperties"),
        ({"if": {}, "then": {"const": 1}}, "then"),
        ({"type": "string", "format": "email"}, "format"),
        ({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a", "zz"]}, "required/zz"),
    ],
)
def test_a_keyword_that_the_grammar_drops_is_listed(schema, keyword, stream):
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    reply = ask(
        toy_application("1", template="{{ messages[0].content }}"),
        CHAT,
        JSON | {"response_format": wanted, "stream": stream},
    )
    last = reply.events[-1] if stream else reply.json
    assert last["bankml_not_enforced"] == [f"#/{keyword}"]
    assert reply.headers["Warning"] == '299 bankml "1 keywords of the JSON schema are not enforced"'
    strict = {"type": "json_schema", "json_schema": {"schema": schema, "strict": True}}
    told = ask(toy_application("1"), CHAT, JSON | {"response_format": strict})
    if told.status == 200:
        assert "bankml_not_enforced" not in json.dumps(told.json)
    else:
        assert told.status == 400 and keyword.partition("/")[0] in told.error["message"]
