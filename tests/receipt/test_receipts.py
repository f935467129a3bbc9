import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml import __version__
from bankml.receipt.check import check
from bankml.receipt.raw import raw_value
from bankml.receipt.receipt import Provenance, Tally

PROVENANCE = Provenance("engine 1", "ab" * 32, "play")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def test_the_fields_and_their_order():
    ticks = iter([12.0, 13.5])
    tally = Tally(PROVENANCE, b"{}", 10.0, clock=lambda: next(ticks))
    assert tally.ttft_ms is None
    tally.token()
    tally.text("å")
    tally.token()
    tally.text("b")
    assert list(tally.receipt(3, 2).items()) == [
        ("bankml", __version__),
        ("engine", "engine 1"),
        ("model_sha256", "ab" * 32),
        ("guard", "play"),
        ("prompt_tokens", 3),
        ("completion_tokens", 2),
        ("ttft_ms", 2000.0),
        ("wall_ms", 3500.0),
        ("response_sha256", sha256("åb".encode())),
        ("request_sha256", sha256(b"{}")),
        ("signed", False),
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_the_text_is_hashed_as_it_comes(parts):
    tally = Tally(PROVENANCE, b"", 0.0)
    for part in parts:
        tally.text(part)
    assert tally.response_sha256 == sha256("".join(parts).encode())


def receipt_for(request, text):
    tally = Tally(PROVENANCE, request, 0.0)
    tally.text(text)
    return tally.receipt(1, 1)


def whole(text, receipt):
    return json.dumps({"choices": [{"message": {"content": text}}], "bankml_receipt": receipt}).encode()


def streamed(text, receipt, line_end="\n"):
    events = [json.dumps({"choices": [{"delta": {"content": c}}]}) for c in text]
    events += [json.dumps({"choices": []}), json.dumps({"bankml_receipt": receipt}), "[DONE]"]
    return "".join(f"data: {e}{line_end}{line_end}" for e in events).encode()


@pytest.mark.parametrize("form", [whole, streamed, lambda t, r: streamed(t, r, "\r\n")])
def test_a_receipt_that_fits(form):
    checked = check(b"request", form("Oslo å", receipt_for(b"request", "Oslo å")))
    assert checked.ok and checked.text == "Oslo å" and checked.receipt["engine"] == "engine 1"


CHAT, PROMPT = b'{"messages": []}', b'{"prompt": "x"}'
FORMS = {
    "/v1/chat": (CHAT, lambda t: {"choices": [{"message": {"content": t}}]}),
    "/v1 text": (PROMPT, lambda t: {"choices": [{"text": t}]}),
    "/api/chat": (CHAT, lambda t: {"message": {"content": t}, "done": True}),
    "/api/generate": (PROMPT, lambda t: {"response": t, "done": True}),
    "/completion": (PROMPT, lambda t: {"content": t, "stop": True}),
}
ELSEWHERE = [
    {"content": "Oslo"},
    {"response": "Oslo"},
    {"message": {"content": "Oslo"}},
    {"choices": [{"text": "Oslo"}]},
    {"choices": [{"message": {"content": "Oslo"}}]},
]


@pytest.mark.parametrize("form", FORMS)
def test_the_text_is_where_its_api_has_it(form):
    request, answer = FORMS[form]
    receipt = receipt_for(request, "Oslo")

    def checked(value):
        return check(request, json.dumps({**value, "bankml_receipt": receipt}).encode())

    assert checked(answer("Oslo")).ok and checked(answer("Oslo")).text == "Oslo"
    for moved in ELSEWHERE:
        value = {**answer(""), **moved}
        assert checked(value).ok == (value == answer("Oslo")), value


@pytest.mark.parametrize(
    ("form", "counts"),
    [
        ("/v1/chat", {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        ("/v1 text", {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        ("/api/chat", {"prompt_eval_count": 3, "eval_count": 2}),
        ("/api/generate", {"prompt_eval_count": 3, "eval_count": 2}),
        ("/completion", {"tokens_evaluated": 3, "tokens_predicted": 2}),
    ],
)
def test_the_counts_are_the_receipts(form, counts):
    request, answer = FORMS[form]
    tally = Tally(PROVENANCE, request, 0.0)
    tally.text("Oslo")
    receipt = tally.receipt(3, 2)

    def problems(counts):
        return check(request, json.dumps({**answer("Oslo"), **counts, "bankml_receipt": receipt}).encode()).problems

    assert problems(counts) == ()
    inner = counts.get("usage", counts)
    for name, count in inner.items():
        for wrong in (count + 1, float(count), str(count), True):
            altered = {**inner, name: wrong}
            (problem,) = problems({"usage": altered} if "usage" in counts else altered)
            assert name in problem and "but the receipt's" in problem
    assert problems({"usage": "none"}) == ()


def test_a_stream_counts_as_it_goes():
    tally = Tally(PROVENANCE, PROMPT, 0.0)
    tally.text("ab")
    events = [
        {"content": "a", "stop": False, "tokens_predicted": 1},
        {"content": "b", "stop": False, "tokens_predicted": 2},
        {"content": "", "stop": False, "bankml_receipt": tally.receipt(3, 2)},
        {"content": "", "stop": True, "tokens_predicted": 2},
    ]
    assert check(PROMPT, "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()).ok


@pytest.mark.parametrize("form", [whole, streamed])
def test_one_letter_changed(form):
    receipt = receipt_for(b"request", "Oslo")
    assert [p.split()[0] for p in check(b"request", form("0slo", receipt)).problems] == ["response_sha256"]
    assert [p.split()[0] for p in check(b"request ", form("Oslo", receipt)).problems] == ["request_sha256"]
    assert len(check(b"", form("", receipt)).problems) == 2


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "the answer cannot be read: it is neither a JSON object nor a stream of events"),
        (b"hello", "the answer cannot be read: it is neither a JSON object nor a stream of events"),
        (b"[]", "the answer cannot be read: it is neither a JSON object nor a stream of events"),
        (b"{}", "the answer carries 0 receipts, not one"),
        (b'{"bankml_receipt": 5}', "the answer carries 1 receipts, not one"),
        (b"data: {}\n\n", "the answer cannot be read: the stream ends without data: [DONE]"),
        (b"data: 5\n\ndata: [DONE]\n\n", "the answer cannot be read: it has JSON that is not an object"),
        (b'{"a":' + b"[" * 100000, "the answer cannot be read: its JSON is nested too deeply"),
    ],
)
def test_what_is_no_answer(answer, problem):
    assert check(b"", answer).problems == (problem,)


@given(st.binary() | st.text('{}[]":,data \n', max_size=60).map(str.encode))
def test_no_answer_breaks_the_check(answer):
    assert not check(b"request", answer).ok


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('ab"\\{,'), inner, max_size=3),
    max_leaves=12,
)


@given(st.data(), JSON, st.sampled_from([None, 1]), st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
def test_a_values_own_characters_are_found(data, value, indent, separators):
    path, inside = [], value
    while isinstance(inside, (list, dict)) and inside and data.draw(st.booleans()):
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        path.append(data.draw(st.sampled_from(keys)))
        inside = inside[path[-1]]
    text = json.dumps(value, indent=indent, separators=separators)
    found = raw_value(f" {text}\n", tuple(path))
    assert found in text and json.loads(found) == inside
    assert raw_value(text, (*path, "no such key")) is None and raw_value(text, (*path, 99)) is None


def test_of_a_repeated_key_the_last_value_is_found():
    assert raw_value('{"a": 1, "a": [2.50 , 3]}', ("a",)) == "[2.50 , 3]"


def with_entries(entries, receipt):
    """A whole answer whose array is written as `entries` has it."""
    head = '{"choices": [{"message": {"content": "Oslo"}, "logprobs": {"content": ' + entries
    return (head + '}}], "bankml_receipt": ' + json.dumps(receipt) + "}").encode()


def test_probabilities_are_hashed_as_they_are_written():
    tally = Tally(PROVENANCE, b"request", 0.0)
    tally.text("Oslo")
    tally.logprobs(b'{"logprob": -1.50}')
    tally.logprobs(b'{"logprob": -2}')
    receipt = tally.receipt(1, 1)
    assert receipt["logprobs_sha256"] == sha256(b'[{"logprob": -1.50}, {"logprob": -2}]')
    assert list(receipt)[-3:] == ["request_sha256", "logprobs_sha256", "signed"]
    assert check(b"request", with_entries('[{"logprob": -1.50}, {"logprob": -2}]', receipt)).ok
    for other in ('[{"logprob": -1.5}, {"logprob": -2}]', '[{"logprob": -1.50},{"logprob": -2}]', "[]", "null"):
        problems = check(b"request", with_entries(other, receipt)).problems
        assert [problem.split()[0] for problem in problems] == ["logprobs_sha256"]
    bare = receipt_for(b"request", "Oslo")
    assert [p.split()[2] for p in check(b"request", with_entries("[{}]", bare)).problems] == ["None,"]


def test_sums_and_timings_are_compared_with_the_receipt():
    request = b"{}"
    receipt = {"response_sha256": sha256(b"x"), "request_sha256": sha256(request), "prompt_tokens": 5,
               "completion_tokens": 2}  # fmt: skip
    answer = {
        "choices": [{"message": {"content": "x"}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        "timings": {"cache_n": 1, "prompt_n": 4, "predicted_n": 2},
        "bankml_receipt": receipt,
    }
    assert check(request, json.dumps(answer).encode()).problems == ()
    for part, name, says in (
        (
            "usage",
            "total_tokens",
            "usage.total_tokens is 9, but the receipt's prompt_tokens + completion_tokens is 5 + 2",
        ),
        ("timings", "prompt_n", "timings.prompt_n + timings.cache_n is 9 + 1, but the receipt's prompt_tokens is 5"),
        ("timings", "predicted_n", "timings.predicted_n is 9, but the receipt's completion_tokens is 2"),
    ):
        changed = {**answer, part: {**answer[part], name: 9}}
        assert check(request, json.dumps(changed).encode()).problems == (says,)
