"""Answers of the C API's handle, computed again from their receipts."""

import json

import pytest

from bankml.capi.handle import Handle
from bankml.library.load import LoadOptions, open_library
from tests.replay.served import Served
from tests.tiny_model import END, tiny_model

REQUEST = {"messages": [{"role": "user", "content": "where is the rain"}], "max_tokens": 24, "seed": 5}
LONG = {**REQUEST, "logit_bias": [[END, False]], "temperature": 1}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    return Served(tiny_model(tmp_path_factory.mktemp("embedded")))


@pytest.fixture
def handle(served):
    library = open_library(served.again(), LoadOptions(1024, environment={"BANKML_THREADS": "1"}))
    handle = Handle(library, lambda: False)
    yield handle
    handle.close()


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"logprobs": True},
        {"n_probs": 2},
        {"stream": True, "model": "any"},
        {"response_format": {"type": "json_object"}},
    ],
)
def test_a_whole_answer(served, handle, more):
    sent = json.dumps({**LONG, **more}).encode()
    for _ in range(2):  # the second finds its prompt in the cache
        code, answer = handle.chat(sent)
        assert code == 0, answer
        verdict = served.verdict(sent, answer)
        assert verdict.ok, verdict


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_an_answer_that_the_callback_stopped(served, handle, pieces):
    sent, given = json.dumps(LONG).encode(), []

    def piece(text):
        given.append(text)
        return len(given) < pieces

    code, answer = handle.chat(sent, piece)
    assert code == 0, answer
    assert len(given) == pieces
    verdict = served.verdict(sent, answer)
    assert verdict.ok, verdict
    longer = answer.replace(b'"completion_tokens":', b'"completion_tokens": 1')
    assert not served.verdict(sent, longer).ok
