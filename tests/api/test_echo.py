"""`echo` of `/v1/completions`: the prompt before the answer, with its tokens' probabilities."""

import json

import numpy as np
import pytest

from bankml.http.json_out import json_bytes
from bankml.receipt.check import check
from bankml.sampling.logprobs import token_probs
from tests.api.api_toys import ToyModel, ask, toy_application
from tests.engine.engine_toys import END, GreedySampler, saying

PATH = "/v1/completions"
PROMPT = "Q:é<end>A:"
SPELLED = [*"Q:é".encode(), 256, *b"A:"]


class ReportingSampler(GreedySampler):
    def __init__(self, n_probs):
        super().__init__()
        self._n_probs = n_probs

    def probabilities(self, logits, token):
        return token_probs(logits, token, self._n_probs) if self._n_probs else None


def oslo():
    """Says where it is behind "A:", and ends before."""
    said = saying("Oslo.")
    return ToyModel(lambda context: said(context) if bytes(t for t in context if t < 256).count(b"A:") else END)


def echoing(body, model=None):
    sent = json.dumps({"prompt": PROMPT, "echo": True, **body}).encode()
    model = model or oslo()
    reply = ask(toy_application(model=model, sampler=lambda overrides: ReportingSampler(overrides.n_probs)), PATH, sent)
    assert reply.status == 200, reply.body
    checked = check(sent, reply.body)
    assert checked.ok, checked.problems
    return reply, checked


def test_the_text_begins_with_the_prompt():
    for stream in (False, True):
        reply, checked = echoing({"stream": stream})
        assert checked.text == PROMPT + "Oslo."
        last = reply.events[-1] if stream else reply.json
        assert last["usage"]["completion_tokens"] == 6 and last["usage"]["prompt_tokens"] == len(SPELLED)


def test_every_token_of_the_prompt_has_its_probability_but_the_first():
    choice = echoing({"logprobs": 2, "max_tokens": 1})[0].json["choices"][0]
    found = choice["logprobs"]
    assert found["tokens"] == ["Q", ":", "", "é", "<end>", "A", ":", "O"] and "".join(found["tokens"]) == choice["text"]
    assert found["text_offset"] == [0, 1, 2, 2, 3, 8, 9, 10]
    assert found["token_logprobs"][0] is found["top_logprobs"][0] is None
    assert all(value < 0 for value in found["token_logprobs"][1:])
    assert all(len(one) == 2 for one in found["top_logprobs"][1:])
    # the toy's logits make "O" likely behind "A:", and nothing else
    row = np.zeros(257, np.float32)
    row[ord("O")] = 1
    wanted = token_probs(row, ord("O"), 2)
    assert found["token_logprobs"][-1] == wanted.value == found["top_logprobs"][-1]["O"]


@pytest.mark.parametrize("stream", [False, True])
def test_no_token_is_drawn_for_max_tokens_0(stream):
    reply, checked = echoing({"logprobs": 1, "max_tokens": 0, "stream": stream})
    assert checked.text == PROMPT
    objects = reply.events if stream else [reply.json]
    tokens = [token for one in objects for token in (one["choices"][0]["logprobs"] or {"tokens": []})["tokens"]]
    assert len(tokens) == len(SPELLED)
    assert objects[-1]["usage"]["completion_tokens"] == 0 and objects[-1]["choices"][0]["finish_reason"] == "length"
    assert checked.receipt["completion_tokens"] == 0


def test_logprobs_0_lists_no_alternative():
    found = echoing({"logprobs": 0, "max_tokens": 1})[0].json["choices"][0]["logprobs"]
    assert len(found["token_logprobs"]) == len(SPELLED) + 1 and not any(found["top_logprobs"])


def test_changed_probabilities_do_not_fit_the_receipt():
    sent = json.dumps({"prompt": PROMPT, "echo": True, "logprobs": 1, "max_tokens": 1}).encode()
    sampler = {"sampler": lambda overrides: ReportingSampler(overrides.n_probs)}
    answer = ask(toy_application(model=oslo(), **sampler), PATH, sent).json
    assert check(sent, json_bytes(answer)).ok
    for name, value in (("token_logprobs", -0.5), ("tokens", "x"), ("text_offset", 99), ("top_logprobs", {"x": -1.0})):
        changed = json.loads(json.dumps(answer))
        changed["choices"][0]["logprobs"][name][3] = value
        assert not check(sent, json_bytes(changed)).ok, name


def test_the_prompt_is_computed_once():
    model = oslo()
    echoing({"logprobs": 1, "max_tokens": 2}, model)
    before = len(SPELLED)
    assert [call[0] for call in model.calls] == [*range(before), before - 1, before]


def test_what_is_refused():
    body = {"prompt": "A:", "echo": True, "logprobs": 1, "post_sampling_probs": True}
    reply = ask(toy_application(), PATH, body)
    assert reply.status == 400 and "post_sampling_probs" in reply.error["message"]
