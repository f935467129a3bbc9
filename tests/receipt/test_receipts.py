import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml import __version__
from bankml.receipt.check import check
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
        (b"data: 5\n\ndata: [DONE]\n\n", "the answer cannot be read: it holds JSON that is not an object"),
        (b'{"a":' + b"[" * 100000, "the answer cannot be read: its JSON is nested too deep"),
    ],
)
def test_what_is_no_answer(answer, problem):
    assert check(b"", answer).problems == (problem,)


@given(st.binary() | st.text('{}[]":,data \n', max_size=60).map(str.encode))
def test_no_answer_breaks_the_check(answer):
    assert not check(b"request", answer).ok
