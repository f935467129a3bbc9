"""The engine's answers without sockets: however the bytes are cut, and whatever they are."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bankml.errors import EngineFailed
from bankml.http.limits import Limits
from bankml.receipt.check import check
from bankml.receipt.receipt import Provenance, Tally
from bankml.upstream.engine_answer import AnswerReader
from bankml.upstream.transcript import EventStream, Transcript
from tests.upstream.standin import DONE, LAST, STREAM, STREAM_HEAD, TEXT, WHOLE, answer, chunk, delta, streamed

TRAILERS = STREAM_HEAD + b"5;ext=1\r\nhello\r\n0\r\nX-Trailer: y\r\n\r\n"


def pieces(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.sampled_from([answer(WHOLE), answer(WHOLE, end=LAST), streamed(), TRAILERS]), st.lists(st.integers(0, 5000)))
def test_however_an_answer_is_cut_its_body_is_the_same(data, places):
    whole, cut = AnswerReader(Limits()), AnswerReader(Limits())
    body = whole.take(data)
    assert b"".join(cut.take(part) for part in pieces(data, places) if part) == body and body
    assert whole.complete and cut.complete and cut.head == whole.head
    assert cut.head.keeps_open == (LAST not in data)
    with pytest.raises(EngineFailed, match="bytes follow its end"):
        cut.take(b"x")


@given(st.binary() | st.binary().map(lambda data: STREAM_HEAD + data) | st.binary().map(lambda data: data + b"\n\n"))
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n")
def test_any_bytes_are_read_or_refused(data):
    reader = AnswerReader(Limits())
    try:
        reader.take(data)
        reader.ended()
    except EngineFailed as error:
        assert error.message.startswith("llama-server's response cannot be read: ") and len(error.message) < 400
    stream = EventStream(tally := Tally(Provenance("e", "", "play"), b"", 0.0), Transcript(tally), 1000)
    try:
        stream.take(data)
        stream.end()
    except EngineFailed as error:
        assert error.message.startswith("llama-server's response cannot be read: ")


@given(st.lists(st.integers(0, 5000)), st.sampled_from([b"\n", b"\r\n"]))
def test_however_a_stream_is_cut_its_events_are_whole_and_the_receipt_fits(places, line_end):
    data = b"".join(STREAM).replace(b"\n", line_end)
    stream = EventStream(tally := Tally(Provenance("e", "", "play"), b"q", 0.0), Transcript(tally), 10_000)
    got = b""
    for part in pieces(data, places):
        events = stream.take(part)
        assert not events or events.endswith(line_end * 2)
        got += events
    assert got == data.removesuffix(DONE.replace(b"\n", line_end))
    checked = check(b"q", got + stream.end())
    assert checked.ok and checked.text == TEXT


LOGPROBS = b'{"token":"a","bytes":[97],"logprob":-0.1,"top_logprobs":[]}'
BASES = [
    b"".join(STREAM),
    STREAM[0]
    + delta("a", further=b',"x":{}').replace(b'"index"', b'"logprobs":{"content":[%s]},"index"' % LOGPROBS)
    + DONE,
]
FRAGMENTS = [
    b"\n", b"\r", b"\r\n", b"data:", b"data", b": c\n", b"event: x\n", b"id: 1\n", b"{", b"}", b"[", b"]", b'"', b"\\",
    b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"[DONE]", b"\\ud800", b"null", b"1e400", b" ",
    b'"content":"x",', b'"text":"t",', b'"message":{"content":"m"},', b'"logprobs":null,', b'"error":1,',
    b'"bankml_receipt":1,', b",",
]  # fmt: skip
CHANGES = st.lists(st.tuples(st.integers(0, 2000), st.sampled_from(FRAGMENTS), st.integers(0, 30)), max_size=3)


@settings(max_examples=400)
@given(st.sampled_from(BASES), CHANGES, st.lists(st.integers(0, 5000), max_size=4))
def test_whatever_is_changed_a_receipt_that_is_given_fits(data, changes, places):
    """What we pass on and vouch for is what `bankml check`, reading it anew, finds true."""
    for place, fragment, dropped in changes:
        at = place % len(data)
        data = data[:at] + fragment + data[at + dropped :]
    stream = EventStream(tally := Tally(Provenance("e", "", "play"), b"q", 0.0), Transcript(tally), 10_000)
    try:
        got = b"".join(map(stream.take, pieces(data, places))) + stream.end()
    except EngineFailed:
        return
    assert stream.failed or check(b"q", got).ok


def test_an_event_in_many_parts_is_not_looked_at_again_and_again():
    stream = EventStream(tally := Tally(Provenance("e", "", "play"), b"q", 0.0), Transcript(tally), 64 << 20)
    for _ in range(1000):
        assert stream.take(b"x" * 60_000) == b""  # 60 MB; looking from the start each time would take minutes
    assert chunk(b"") == b"0\r\n\r\n"
