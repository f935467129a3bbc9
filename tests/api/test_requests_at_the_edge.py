"""What is wrong with a request is said in a sentence with the right status, whatever the request is."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bankml.api.reading.generation import COUNTS, FLAGS, MAX_TOKENS_FIELDS, UNSUPPORTED
from bankml.api.reading.json_body import MAX_DEPTH, read_json
from bankml.errors import RequestError
from bankml.http.json_out import json_bytes
from tests.api.api_toys import CHAT, ask, toy_application, user

RECORDED = json.loads((Path(__file__).parent.parent / "recordings" / "api" / "edge.json").read_text("utf-8"))


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["body"][:60])
def test_as_llama_server_answers(case):
    reply = ask(toy_application(), case["path"], case["body"].encode())
    assert reply.status == case["status"]
    if "message" in case:
        assert reply.error["message"] == case["message"]
    if case["status"] != 200:
        assert reply.error["code"] == case["status"] and reply.error["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty; send a JSON object"),
        (b" \n", "the body is empty; send a JSON object"),
        (b"{", "the body is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b"5", "the body must be a JSON object with 'messages'"),
        (b'{"a":"x\ny"}', "the body is not JSON: Invalid control character at line 1, column 8"),
        (b'{"a":NaN}', "the body is not JSON: NaN is not a number of JSON"),
        (b'{"a":[-Infinity]}', "the body is not JSON: -Infinity is not a number of JSON"),
        (b'{"a":1e400}', "the number 1e400 is out of range"),
        (b'{"a":-' + b"9" * 5000 + b"}", "the number -" + "9" * 39 + "… is out of range"),
        (b'\xef\xbb\xbf{"messages":[]}', "the body begins with a UTF-8 byte order mark; send plain UTF-8 without one"),
        (
            '{"messages":[]}'.encode("utf-16"),
            "the body begins with a UTF-16 byte order mark; send plain UTF-8 without one",
        ),
        (b'{"a":"\xff"}', "the body is not UTF-8: byte 6 cannot be read"),
        (b"[" * 129 + b"]" * 129, "the body's arrays and objects are nested deeper than 128 levels"),
        (b"[" * 100000, "the body's arrays and objects are nested deeper than 128 levels"),
        (b'{"a":' * 100000, "the body's arrays and objects are nested deeper than 128 levels"),
    ],
)
def test_what_is_not_json(body, message):
    reply = ask(toy_application(), body=body)
    assert (reply.status, reply.error) == (400, {"code": 400, "message": message, "type": "invalid_request_error"})


def test_depth_128_passes():
    assert json.dumps(read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)) == "[" * MAX_DEPTH + "]" * MAX_DEPTH


def test_the_last_of_repeated_keys_counts():
    assert read_json(b'{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (rb"\ud83d\ude42", "🙂"), (rb"\ud83d", "\ufffd"), (rb"\ude42", "\ufffd"), (rb"\ude42\ud83d", "\ufffd\ufffd"),
        (rb"\ud83d\ud83d\ude42", "\ufffd🙂"), (rb"\ud83dx\ude42", "\ufffdx\ufffd"), (rb"\ud83d\u0041", "\ufffdA"),
        (rb"\\ud83d", "\\ud83d"),
    ],
)  # fmt: skip
def test_surrogates(escaped, text):
    assert read_json(b'[{"' + escaped + b'":["' + escaped + b'"]}]') == [{text: [text]}]


def test_large_integers_are_numbers():
    assert read_json(b"[18446744073709551616, -9223372036854775808]") == [1 << 64, -(1 << 63)]
    assert read_json(b"1" + b"0" * 30) == 1e30


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"stream": "yes"}, "Field 'stream': expected true or false, but got \"yes\""),
        ({"stream": 1}, "Field 'stream': expected true or false, but got 1"),
        ({"stream_options": []}, "Field 'stream_options': expected an object, but got an array"),
        (
            {"stream_options": {"include_usage": "x"}},
            "Field 'stream_options.include_usage': expected true or false, but got \"x\"",
        ),
        ({"max_tokens": "3"}, "Field 'max_tokens': expected a number, but got \"3\""),
        ({"max_tokens": True}, "Field 'max_tokens': expected a number, but got true"),
        ({"max_tokens": -2}, "Field 'max_tokens': Value must be between -1 <= value <= 2147483647, but got -2"),
        (
            {"n_predict": 1 << 40},
            "Field 'n_predict': Value must be between -1 <= value <= 2147483647, but got 1099511627776",
        ),
        (
            {"max_tokens": 1e300},
            "Field 'max_tokens': Value must be between -1 <= value <= 2147483647, but got 1e+300",
        ),
        ({"n": 0}, "Field 'n': Value must be between 1 <= value <= 1, but got 0"),
        ({"cache_prompt": 0}, "Field 'cache_prompt': expected true or false, but got 0"),
        ({"stop": ""}, "Field 'stop': expected a string that is not empty"),
        ({"stop": ["a", ""]}, "Field 'stop[1]': expected a string that is not empty, but got an empty string"),
        ({"stop": [None]}, "Field 'stop[0]': expected a string that is not empty, but got null"),
        ({"stop": {}}, "Field 'stop': expected a string or an array of strings, but got an object"),
        ({"stop": True}, "Field 'stop': expected a string or an array of strings, but got true"),
        ({"model": 3}, "Field 'model': expected a string, but got 3"),
        ({"response_format": "json"}, "Field 'response_format': expected an object, but got \"json\""),
        ({"grammar": 5}, "Field 'grammar': expected a string, but got 5"),
    ],
)
def test_a_field_that_cannot_be(more, message):
    reply = ask(toy_application(), body=user("Hi", **more))
    assert (reply.status, reply.error["message"], reply.error["type"]) == (400, message, "invalid_request_error")


@pytest.mark.parametrize(("field", "value"), [(f, v) for f, (values, _) in UNSUPPORTED.items() for v in values])
def test_refused_fields_pass_when_they_change_nothing(field, value):
    assert ask(toy_application(), body=user("Hi", **{field: value})).status == 200
    assert ask(toy_application(), body=user("Hi", **{field: None})).status == 200


@pytest.mark.parametrize("field", list(UNSUPPORTED))
def test_refused_fields_are_named(field):
    reply = ask(toy_application(), body=user("Hi", **{field: 12345}))
    assert reply.status == 400 and reply.error["message"].startswith(f"Field '{field}': ")


@pytest.mark.parametrize("path", [CHAT, "/completion"])
@pytest.mark.parametrize(
    ("field", "value"), [*((flag, 1) for flag in FLAGS), *((name, least - 1) for name, least in COUNTS.items())]
)
def test_fields_without_a_use_hold_what_they_are_for(path, field, value):
    reply = ask(toy_application(), path, user("A:", prompt="A:", max_tokens=2, **{field: value}))
    assert reply.status == 400 and reply.error["message"].startswith(f"Field '{field}': ")
    assert ask(toy_application(), path, user("A:", prompt="A:", max_tokens=2, **{field: None})).status == 200


def test_the_model_by_each_of_its_names():
    for name in ["toy-1m-f16", "Toy-1M-F16", "toy-1m-f16:latest", "Toy-1M-F16.gguf", "toy-1m", "toy-1m:latest"]:
        assert ask(toy_application(), body=user("Hi", model=name)).status == 200
    for name in ["", "../toy-1m-f16", "org/toy-1m-f16", "toy\0"]:
        reply = ask(toy_application(), body=user("Hi", model=name))
        assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    for name in ["gpt-4", "toy", "toy-1m-f16:q4"]:
        reply = ask(toy_application(), body=user("Hi", model=name))
        assert (reply.status, reply.error["type"]) == (404, "not_found_error")
        assert repr(name) in reply.error["message"] and "toy-1m-f16" in reply.error["message"]


def test_no_surrogate_is_ever_written():
    assert json_bytes({"a\ud800": ["\udc00", "🙂", "\ud83d\ude42"]}).decode() == '{"a\ufffd": ["\ufffd", "🙂", "🙂"]}'
    with pytest.raises(ValueError, match="Out of range"):
        json_bytes(float("nan"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcontent", max_size=7), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["messages", "model", "stream", "stream_options", "stop", "n", "n_cmpl", "cache_prompt", "response_format",
     "content", "tokens", "parse_special", "with_pieces",
     *MAX_TOKENS_FIELDS, *UNSUPPORTED]
)  # fmt: skip
good_messages = st.just([{"role": "user", "content": "Hi"}])


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from([CHAT, "/tokenize", "/detokenize", "/apply-template"]),
    st.dictionaries(names, json_values, max_size=4),
    good_messages | json_values,
)
@example("/tokenize", {"parse_special": "\n"}, [])
@example(CHAT, {"response_format": {"type": "\n"}}, [{"content": "Hi"}])
@example(CHAT, {"model": "\n"}, [{"content": "Hi"}])
@example(CHAT, {"stop": [[]]}, [{"content": "Hi"}])
@example("/tokenize", {"content": [1, "a", 10**30]}, [])
@example("/detokenize", {"tokens": [-1]}, [])
def test_no_object_is_a_server_error(path, fields, messages):
    body = json.dumps({"messages": messages, **fields}).encode()
    reply = ask(toy_application(), path, body)
    assert reply.status in (200, 400, 404), body
    if reply.status != 200:
        error = reply.error
        assert error["code"] == reply.status and error["message"] and "\n" not in error["message"]


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from([CHAT, "/tokenize", "/detokenize", "/apply-template"]),
    st.binary(max_size=40) | st.text('{}[]":,\\u0d8e-1t', max_size=40).map(str.encode),
)
def test_no_bytes_are_a_server_error(path, body):
    reply = ask(toy_application(), path, body)
    assert reply.status in (200, 400)
    assert isinstance(reply.json, dict)


def test_a_bad_number_in_an_error_is_not_written_as_json():
    try:
        read_json(b'{"a": 1e999}')
    except RequestError as error:
        assert json_bytes(str(error))
    else:
        pytest.fail("1e999 was read")
