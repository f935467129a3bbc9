"""Probabilities in an answer: which tokens have an entry, what text it carries, and the hash of the bytes as sent."""

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.receipt.check import check
from bankml.sampling.logprobs import TokenProbs
from tests.api.api_toys import CHAT, ask, toy_application, user
from tests.engine.engine_toys import END, GreedySampler


class Telling(GreedySampler):
    """Reports each token with a number that tells which it was, and two others whose bytes are no whole character."""

    def __init__(self, body=None, logarithmic=True):
        super().__init__()
        self.logarithmic = logarithmic

    def probabilities(self, logits, token):
        return TokenProbs(token, -token / 4, ((token, -token / 4), (0xF0, -70.5), (0x80, -71.5)), self.logarithmic)


def answers(text, path=CHAT, **more):
    """The same question whole and streamed: (bodies, replies)."""
    application = toy_application(text, sampler=lambda overrides: Telling())
    asked = user("Capital?", **more) if path == CHAT else {"prompt": "A:", **more}
    bodies = [json.dumps({**asked, "stream": stream}).encode() for stream in (False, True)]
    return bodies, [ask(application, path, body) for body in bodies]


def whole_entries(reply):
    return reply.json["choices"][0]["logprobs"]["content"]


def streamed_entries(reply):
    choices = [choice for event in reply.events for choice in event.get("choices", [])]
    return [entry for choice in choices for entry in choice.get("logprobs", {}).get("content", [])]


def texts(entries):
    return [entry["token"] for entry in entries]


def test_an_entry_has_the_token_its_bytes_and_the_likeliest():
    _, (whole, _) = answers("Os")
    assert whole_entries(whole)[0] == {
        "id": ord("O"), "token": "O", "bytes": [ord("O")], "logprob": -19.75,
        "top_logprobs": [
            {"id": ord("O"), "token": "O", "bytes": [ord("O")], "logprob": -19.75},
            {"id": 0xF0, "token": "", "bytes": [0xF0], "logprob": -70.5},
            {"id": 0x80, "token": "\ufffd", "bytes": [0x80], "logprob": -71.5},
        ],
    }  # fmt: skip


def test_an_entry_comes_when_the_character_is_whole():
    _, (whole, stream) = answers("aé🙂")
    assert texts(whole_entries(whole)) == ["a", "é", "🙂", ""]
    assert [entry["id"] for entry in whole_entries(whole)] == [ord("a"), "é".encode()[-1], "🙂".encode()[-1], END]
    assert streamed_entries(stream) == whole_entries(whole)[:-1]


def roles(reply):
    return [event["choices"][0]["delta"].get("role") for event in reply.events if event.get("choices")]


def test_the_role_comes_before_everything_else():
    assert roles(answers("Os")[1][1]) == ["assistant", None, None, None]
    assert roles(answers("é")[1][1]) == ["assistant", None, None]
    plain = ask(toy_application("Os"), body=user("Capital?", stream=True))
    assert roles(plain) == ["assistant", None, None, None]


def test_what_is_held_for_a_stop_string_comes_with_the_token_that_releases_it():
    _, (whole, stream) = answers("a-->b", stop=["--x"])
    assert texts(whole_entries(whole)) == ["a", "", "", "-->", "b", ""]
    assert texts(streamed_entries(stream)) == ["a", "-->", "b"]
    _, (whole, stream) = answers("a--", stop=["--x"])
    assert texts(whole_entries(whole)) == ["a", "", "", "--"]  # the end of the answer releases it
    assert texts(streamed_entries(stream)) == ["a", "--"]


def test_a_stop_strings_own_tokens_have_no_entry():
    _, (whole, stream) = answers("Oslo. Bergen", stop=[". B"])
    assert whole.json["choices"][0]["message"]["content"] == "Oslo"
    assert texts(whole_entries(whole)) == list("Oslo") == texts(streamed_entries(stream))
    _, (whole, _) = answers("Oslo", stop=["Os"])
    assert "logprobs" not in whole.json["choices"][0] and "logprobs_sha256" not in whole.json["bankml_receipt"]


def test_text_that_the_token_limit_releases_has_no_entry_of_its_own():
    _, (whole, stream) = answers("a--b", stop=["--x"], max_tokens=3)
    assert whole.json["choices"][0]["message"]["content"] == "a--"
    assert texts(whole_entries(whole)) == ["a", "", ""]
    assert texts(streamed_entries(stream)) == ["a"]
    assert [check(b"", reply.body).text for reply in (whole, stream)] == ["a--", "a--"]


def test_after_the_samplers_a_probability_is_no_logarithm():
    application = toy_application("O", sampler=lambda overrides: Telling(logarithmic=False))
    entry = whole_entries(ask(application, body=user("Capital?")))[0]
    assert list(entry) == ["id", "token", "bytes", "prob", "top_probs"]
    assert list(entry["top_probs"][0]) == ["id", "token", "bytes", "prob"]


def test_a_completion_streams_the_entries_of_the_whole_answer():
    _, (whole, stream) = answers("aé--", "/completion", stop=["--x"])
    streamed = [entry for event in stream.events for entry in event.get("completion_probabilities", [])]
    assert texts(streamed) == ["a", "é", "", "", "--"] and streamed == whole.json["completion_probabilities"]


WHOLE = re.compile(rb'(?:"content"|"completion_probabilities"): (\[\{"id".*?\}\]\}\])(?=[,}])')
# Letters that make stop strings form, end characters halfway, and stand in JSON escaped.
TEXT = st.text('ab.-é🙂"\\[]{}\n', max_size=12)


@given(TEXT, st.lists(TEXT.filter(bool), max_size=2), st.sampled_from([CHAT, "/completion"]), st.integers(1, 15))
def test_the_hash_is_of_the_bytes_that_were_sent(text, stops, path, limit):
    bodies, replies = answers(text, path, stop=stops, max_tokens=limit)
    for body, reply in zip(bodies, replies, strict=True):
        arrays = [found[1:-1] for found in WHOLE.findall(reply.body)]
        checked = check(body, reply.body)
        assert checked.ok, checked.problems
        wanted = hashlib.sha256(b"[" + b", ".join(arrays) + b"]").hexdigest() if arrays else None
        assert checked.receipt.get("logprobs_sha256") == wanted
    assert check(bodies[0], replies[0].body).text == check(bodies[1], replies[1].body).text


@pytest.mark.parametrize("path", [CHAT, "/completion"])
def test_one_float_changed_is_noticed(path):
    bodies, replies = answers("Oslo", path)
    for body, reply in zip(bodies, replies, strict=True):
        for change in ((b"-19.75", b"-19.76"), (b"-19.75, ", b"-19.750, "), (b'"top_logprobs"', b'"top_l0gprobs"')):
            problems = check(body, reply.body.replace(*change, 1)).problems
            assert [problem.split()[0] for problem in problems] == ["logprobs_sha256"]
