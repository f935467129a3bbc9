"""Every answer is computed again to the bit, whatever it was asked with, and whatever was in the cache."""

import json
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bankml import _native
from bankml.replay.speculation import SpeculativePass
from tests.replay.served import Served
from tests.tiny_architectures import tiny_architecture
from tests.tiny_model import END, tiny_model

NO_END = [[END, False]]
WORDS = [{"role": "user", "content": "the lantern and the river"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def chat(**fields):
    return "/v1/chat/completions", {"messages": WORDS, "max_tokens": 24, "logit_bias": NO_END, **fields}


ASKED = {
    "greedy": chat(temperature=0),
    "random": chat(temperature=1.5),
    "seeded": chat(seed=7, temperature=2),
    "streamed": chat(stream=True, temperature=1),
    "logprobs": chat(logprobs=True, top_logprobs=3, stream=True),
    "schema": chat(response_format={"type": "json_schema", "json_schema": {"schema": SCHEMA}}, logit_bias=[]),
    "grammar": chat(grammar="root ::= [a-z]+"),
    "tools": chat(tools=[TOOL], tool_choice="required", max_tokens=40, logit_bias=[]),
    "stop": chat(stop=["e", "a"], temperature=1),
    "mirostat": chat(mirostat=2),
    "copies": chat(n=2, temperature=1),
    "copies streamed": chat(n=2, temperature=1, seed=3, stream=True),
    "no cache": chat(cache_prompt=False),
    "one token": chat(max_tokens=1),
    "continued": chat(messages=[*WORDS, {"role": "assistant", "content": "It is"}]),
    "completion": ("/completion", {"prompt": "Once", "n_predict": 20, "temperature": 1}),
    "tokens": ("/completion", {"prompt": [65, 66, "then"], "n_predict": 9, "stream": True, "n_probs": 2}),
    "prompts": ("/completion", {"prompt": ["Once", "Twice", "Thrice"], "n_predict": 9, "temperature": 1}),
    "fields": ("/completion", {"prompt": "Once", "n_predict": 9, "response_fields": ["content"]}),
    "fields of prompts": (
        "/completion",
        {"prompt": ["Once", "Twice"], "n_predict": 5, "response_fields": ["content", "tokens_predicted"]},
    ),
    "fields streamed": (
        "/completion",
        {"prompt": "Once", "stream": True, "n_predict": 9, "response_fields": ["content"]},
    ),
    "text": ("/v1/completions", {"prompt": "Once", "max_tokens": 9, "stream": True}),
    "echo": ("/v1/completions", {"prompt": "Once upon", "max_tokens": 9, "echo": True, "logprobs": 2}),
    "echo alone": ("/v1/completions", {"prompt": "Once upon", "max_tokens": 0, "echo": True, "logprobs": 2}),
    "Ollama's chat": ("/api/chat", {"model": "m", "messages": WORDS, "options": {"num_predict": 9}}),
    "Ollama's prompt": ("/api/generate", {"model": "m", "prompt": "Once", "stream": False, "options": {"seed": 4}}),
    "responses": ("/v1/responses", {"input": "Once", "max_output_tokens": 9}),
    "messages": ("/v1/messages", {"messages": WORDS, "max_tokens": 9, "stream": True}),
}


@pytest.fixture(scope="module", params=["llama", "gemma3", "qwen3moe"])
def served(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    return Served(tiny_model(folder) if request.param == "llama" else tiny_architecture(folder, request.param))


def depended(served, verdict):
    """The places in the cache of a sliding window depended on earlier requests, and the receipt says so."""
    return "gemma" in served.verified.name and verdict.precondition == "trace"


@pytest.mark.parametrize("name", ASKED)
def test_every_kind_of_answer(served, name):
    """The model is the same for all of them, so most prompts find a part of themselves in the cache."""
    verdict = served.verdict(*served.ask(*ASKED[name]))
    assert verdict.ok or depended(served, verdict), verdict


@pytest.mark.parametrize("name", ASKED)
def test_a_sliding_window_whose_cache_is_empty_or_in_order(tmp_path, name):
    served = Served(tiny_architecture(tmp_path, "gemma3"))
    for _ in range(2):
        verdict = served.verdict(*served.ask(*ASKED[name]))
        assert verdict.ok, verdict


def test_a_conversation_whose_every_turn_finds_the_one_before_in_the_cache(served):
    said = []
    for i, words in enumerate(("a" * 700, "and then", "b" * 90, "go on")):
        said.append({"role": "user", "content": words})
        sent, answer = served.ask(*chat(messages=said, max_tokens=9, temperature=1 + i))
        cached = json.loads(answer)["timings"]["cache_n"]
        assert cached > (500 if i else -1)
        verdict = served.verdict(sent, answer)
        assert verdict.ok or depended(served, verdict), verdict
        said.append(json.loads(answer)["choices"][0]["message"])


def test_answers_that_were_computed_together(tmp_path):
    served = Served(tiny_model(tmp_path), parallel=4)
    answers = {}

    def ask(i):
        messages = [{"role": "user", "content": "x" * 50 * i + " story"}]
        answers[i] = served.ask(*chat(messages=messages, max_tokens=30, temperature=1))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [served.verdict(*answers[i]).ok for i in range(6)] == [True] * 6


@pytest.mark.parametrize("kind", ["f16", "q8_0"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_type_of_the_cache_and_split_attention(tmp_path, kind, threads):
    """From 512 cells on a lone row's attention is split among llama-server's threads."""
    served = Served(tiny_model(tmp_path), {"BANKML_CACHE_TYPE": kind, "BANKML_LLAMA_THREADS": str(threads)})
    answer = served.ask(*chat(messages=[{"role": "user", "content": "w" * 600}], temperature=1))
    assert served.verdict(*answer).ok


@pytest.mark.parametrize("width", [1, 3, 32])
@pytest.mark.parametrize("kernels", _native.kernel_sets())
def test_kernels_threads_and_width_change_nothing(served, width, kernels):
    answer = served.ask(*chat(temperature=1, seed=5, max_tokens=40))
    before = _native.kernel_set()
    _native.use_kernels(kernels)
    try:
        assert served.verdict(*answer, width=width, environment={"BANKML_THREADS": str(width % 3 + 1)}).ok
    finally:
        _native.use_kernels(before)


def test_a_slot_that_was_restored(tmp_path):
    served = Served(tiny_model(tmp_path), parallel=1, slot_dir=str(tmp_path))
    said = [{"role": "user", "content": "a long story, and a longer one"}]
    _, answer = served.ask(*chat(messages=said))
    served.ask("/slots/0?action=save", {"filename": "s"}, "engine")
    said += [json.loads(answer)["choices"][0]["message"], {"role": "user", "content": "go on"}]
    fresh = Served(served.verified, parallel=1, slot_dir=str(tmp_path))
    fresh.ask("/slots/0?action=restore", {"filename": "s"}, "engine")
    sent, answer = fresh.ask(*chat(messages=said))
    assert fresh.verdict(sent, answer).ok


conversation = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a" * 40, "ab" * 300, "c" * 520]),
        st.booleans(),  # goes on
        st.integers(1, 12),
        st.sampled_from([{}, {"cache_prompt": False}, {"n": 2}, {"temperature": 0}, {"logprobs": True}]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=conversation)
def test_any_conversation(served, asked):
    said = []
    for words, goes_on, tokens, fields in asked:
        said = [*(said if goes_on else []), {"role": "user", "content": words}]
        sent, answer = served.ask(*chat(messages=said, max_tokens=tokens, **{"temperature": 1} | fields))
        value = json.loads(answer)
        if "error" in value:  # the context is full
            return
        verdict = served.verdict(sent, answer, width=5)
        assert verdict.ok or depended(served, verdict), verdict
        said.append(value["choices"][0]["message"])


def test_several_tokens_are_computed_at_once(served):
    """As many rows as tokens, in far fewer forward passes: the proposals are those that come."""
    passes = []

    class Counting(SpeculativePass):
        def _computed(self, span, sequence):
            found = super()._computed(span, sequence)
            passes.append(len(found))
            return found

    answer = served.ask(*chat(temperature=1, max_tokens=40, grammar="root ::= [a-z ]+"))
    patch = pytest.MonkeyPatch()
    patch.setattr("bankml.replay.rerun.SpeculativePass", Counting)
    try:
        assert served.verdict(*answer, width=8).ok
    finally:
        patch.undo()
    windowed = "gemma" in served.verified.name
    assert sum(passes) >= 39 and (len(passes) == 39 if windowed else len(passes) <= 39 // 4)


def test_a_running_server_replays(tmp_path):
    """Answers that it gave, while it gives others; a lie is named, and another server's arithmetic too."""
    served = Served(tiny_model(tmp_path), parallel=2)

    def replayed(by, request, answer):
        body = {"request": request.decode(), "answer": answer.decode()}
        return json.loads(by.ask("/bankml/replay", body)[1])

    served.ask(*chat(temperature=0))
    sent, answer = served.ask(*chat(temperature=1, stream=True))
    assert replayed(served, sent, answer)["result"] == "equal"
    assert served.verdict(*served.ask(*chat(temperature=1))).ok, "it answers as before"
    other = Served(served.verified, {"BANKML_LLAMA_THREADS": "1"})
    assert replayed(other, sent, answer)["precondition"] == "arithmetic"
    false = answer.replace(b'"seed": ', b'"seed": 1')
    assert replayed(served, sent, false)["result"] == "different"
    assert replayed(served, sent + b" ", answer)["precondition"] == "receipt"
    error = json.loads(served.ask("/bankml/replay", {"request": "x"})[1])["error"]
    assert error["code"] == 400 and "Field 'answer'" in error["message"]
