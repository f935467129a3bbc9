"""`POST /completion` through the application: its prompts, its fields, its refusals, and that nothing breaks it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.receipt.check import check
from tests.api.api_toys import ask, toy_application
from tests.engine.engine_toys import END


def complete(answer="Oslo.", reply_of=None, **fields):
    body = json.dumps({"prompt": "A:", **fields}).encode()
    return ask(reply_of or toy_application(answer), "/completion", body)


def test_every_field_of_an_answer():
    body = json.dumps({"prompt": "Capital? A:", "n_predict": 9, "return_tokens": True, "stop": ["!"]}).encode()
    reply = ask(toy_application("Os\nlo"), "/completion", body)
    answer = reply.json
    assert check(body, reply.body).problems == () and check(body, reply.body).text == "Os\nlo"
    assert answer.pop("timings")["predicted_n"] == 6
    assert answer.pop("bankml_receipt")["completion_tokens"] == 6
    assert answer == {
        "index": 0, "content": "Os\nlo", "tokens": [*b"Os\nlo", END], "id_slot": 0, "stop": True,
        "model": "toy-1m-f16", "tokens_predicted": 6, "tokens_evaluated": 11,
        "generation_settings": {
            "temperature": 0.0, "stop": ["!"], "max_tokens": 9, "n_predict": 9, "stream": False, "grammar": "",
        },
        "prompt": "Capital? A:", "has_new_line": True, "truncated": False,
        "stop_type": "eos", "stopping_word": "", "tokens_cached": 16,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "kind", "word", "content"),
    [
        ({"stop": ["l", "lo"]}, "word", "l", "Os"),
        ({"n_predict": 2}, "limit", "", "Os"),
        ({"n_predict": 0}, "limit", "", "O"),
        ({"max_tokens": 3}, "limit", "", "Osl"),
        ({}, "eos", "", "Oslo."),
    ],
)
def test_how_it_ended(fields, kind, word, content):
    answer = complete(**fields).json
    assert (answer["stop_type"], answer["stopping_word"], answer["content"]) == (kind, word, content)
    assert answer["tokens"] == []


@pytest.mark.parametrize(
    "prompt",
    ["A:", [65, 58], ["A:"], ["A", 58], [65, ":"], [["A", 58]], [[65, 58]],
     {"prompt_string": "A:"}, [{"prompt_string": "A:"}], {"prompt_string": ["A", 58]}],
)  # fmt: skip
def test_every_form_of_a_prompt(prompt):
    answer = complete(prompt=prompt).json
    assert (answer["prompt"], answer["content"], answer["tokens_evaluated"]) == ("A:", "Oslo.", 2)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prompt": ""}, "the prompt is empty"),
        ({"prompt": [""]}, "the prompt is empty"),
        ({"prompt": []}, '"prompt" must not be empty'),
        ({"prompt": None}, '"prompt" elements must be a string'),
        ({"prompt": [1, 2.5]}, '"prompt" elements must be a string'),
        ({"prompt": [1, True]}, '"prompt" elements must be a string'),
        ({"prompt": [1, 257]}, "Prompt contains invalid tokens"),
        ({"prompt": [-1]}, "Prompt contains invalid tokens"),
        ({"prompt": [10**30]}, '"prompt" elements must be a string'),
        ({"prompt": {"prompt_string": "A:", "multimodal_data": []}}, "Multimodal data provided"),
        ({"prompt": {"prompt_string": "A:", "multimodal_data": None}}, "Multimodal data provided"),
        ({"stream_options": {"include_usage": 1}}, "Field 'stream_options.include_usage'"),
        ({"preserved_tokens": ["<|end|>"]}, "Field 'preserved_tokens'"),
        ({"grammar_triggers": [1]}, "Field 'grammar_triggers'"),
        ({"reasoning_budget_start_tag": "<think>"}, "Field 'reasoning_budget_start_tag'"),
        ({"n_predict": -2}, "Value must be between -1 <= value"),
        ({"stop": ""}, "Field 'stop'"),
        ({"stop": [1]}, r"Field 'stop[0]'"),
        ({"grammar": 7}, "Field 'grammar': expected a string"),
        ({"json_schema": {}, "grammar": "root ::= [a-z]"}, "Cannot use both json_schema and grammar"),
        ({"response_format": {"type": "json_object"}}, "Field 'response_format': it is for /v1/chat/completions"),
        ({"grammar_lazy": True}, "Field 'grammar_lazy'"),
        ({"generation_prompt": "A:"}, "Field 'generation_prompt'"),
        ({"id_slot": 1}, "there is one slot, 0"),
        ({"n": 2}, "Field 'n'"),
        ({"stream": "yes"}, "Field 'stream'"),
        ({"return_tokens": 1}, "Field 'return_tokens'"),
        ({"response_fields": "content"}, "Field 'response_fields'"),
        ({"model": "other"}, "unknown model 'other'"),
        ({"prompt": [65] * 4096}, "exceeds the available context size (4096 tokens)"),
    ],
)
def test_a_refusal_says_what_was_wrong(fields, words):
    reply = complete(**fields)
    assert reply.status == (404 if "model" in fields else 400) and words in reply.error["message"]


def test_a_body_without_a_prompt():
    assert ask(toy_application(), "/completion", b"{}").error["message"] == "'prompt' is required"
    assert ask(toy_application(), "/completion", b"[]").error["message"].startswith("the body must be a JSON object")


def test_streamed_events_end_with_the_receipt_and_the_object_that_stops():
    application = toy_application("é. x")
    body = json.dumps({"prompt": "A:", "stop": ["x"], "stream": True}).encode()
    reply = ask(application, "/completion", body)
    assert b"[DONE]" not in reply.body and reply.finished and check(body, reply.body).problems == ()
    *events, last = reply.events
    assert [event["content"] for event in events] == ["é", ".", " ", ""]
    assert [event["tokens"] for event in events] == [[*"é".encode()], [46], [32], [120]]
    assert all(event["stop"] is False and event["content"] is not None for event in events)
    assert last["bankml_receipt"]["completion_tokens"] == 5
    assert (last["stop"], last["content"], last["stop_type"], last["stopping_word"]) == (True, "", "word", "x")


def test_an_incomplete_character_at_the_end_is_shown_whole_and_streamed():
    for stream in (False, True):
        body = json.dumps({"prompt": "A:", "n_predict": 2, "stream": stream}).encode()
        reply = ask(toy_application("é🙂"[0] + "🙂"), "/completion", body)
        assert check(body, reply.body).text == "é"
        body = json.dumps({"prompt": "A:", "n_predict": 3, "stream": stream}).encode()
        checked = check(body, ask(toy_application("é🙂"), "/completion", body).body)
        assert checked.ok and checked.text == "é\ufffd"


def test_a_stream_that_broke_off_is_no_answer():
    body = json.dumps({"prompt": "A:", "stream": True}).encode()
    data = ask(toy_application(), "/completion", body).body
    assert check(body, data[: data.rindex(b"data: ")]).problems[0].endswith("the stream ends without data: [DONE]")


NUMBERS = st.one_of(st.integers(-3, 300), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)
FIELDS = ("prompt", "n_predict", "max_tokens", "stop", "stream", "n_probs", "logprobs", "cache_prompt", "return_tokens",
          "model", "grammar", "id_slot", "n", "stream_options", "t_max_predict_ms", "temperature", "seed")  # fmt: skip
BODIES = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5)
PROMPTS = st.one_of(
    st.text(max_size=6), st.lists(st.one_of(st.text(max_size=3), st.integers(-2, 260)), max_size=4), JSON
)


@given(BODIES, PROMPTS)
def test_no_body_is_an_error_of_the_server(body, prompt):
    body = {"prompt": prompt, **body}
    data = json.dumps(body).encode()
    reply = ask(toy_application(lambda context: 97 if len(context) % 7 else END), "/completion", data)
    assert reply.status in (200, 400, 404) and reply.finished
    if reply.status == 200:
        assert check(data, reply.body).problems == ()
    else:
        assert reply.error["message"] and "\n" not in reply.error["message"]
