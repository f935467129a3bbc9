"""What the engine does wrong: passed on where it is an error of its own, else a 502 or an event, never a receipt."""

import json
import threading
import time

import pytest

from bankml.http.limits import Limits
from bankml.receipt.check import check
from tests.upstream.front import BODY, STREAMED, House
from tests.upstream.standin import (
    DONE,
    LAST,
    STREAM,
    STREAM_HEAD,
    WHOLE,
    answer,
    chunk,
    delta,
    streamed,
)


@pytest.fixture
def house(tmp_path):
    def build(**options):
        return House(tmp_path / "m.gguf", **options)

    return build


# ---- errors of the engine's


def test_the_engines_errors_are_passed_on(house):
    body = b'{"error":{"code":400,"message":"\'messages\' is required","type":"invalid_request_error"}}'
    for status in (b"400 Bad Request", b"500 Internal Server Error", b"503 Service Unavailable"):
        with house(chat=answer(body, status, LAST)) as it:
            assert it.chat() == (int(status[:3]), body)


def test_an_engine_that_is_still_loading_is_passed_on(house):
    loading = b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'
    with house(health=answer(loading, b"503 Service Unavailable")) as it:
        assert it.ask()[::2] == (503, loading)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
BAD = {
    "nothing": b"",
    "no HTTP": b"hello\r\n\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "LF alone": b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "101 lines": OK + b"X: y\r\n" * 100 + b"\r\n",
    "a line too long": OK + b"X: " + b"y" * 16385 + b"\r\n\r\n",
    "informational": b"HTTP/1.1 100 Continue\r\n\r\n" + answer(WHOLE),
    "redirected": b"HTTP/1.1 302 Found\r\nLocation: http://evil.example\r\nContent-Length: 0\r\n\r\n",
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "gzip": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "65 MiB": OK + b"Content-Length: %d\r\n\r\n" % (64 * 2**20 + 1),
    "chunk of 65 MiB": OK + b"Transfer-Encoding: chunked\r\n\r\n4000001\r\n",
    "chunk of 2**80": OK + b"Transfer-Encoding: chunked\r\n\r\n1%s\r\n" % (b"0" * 20),
    "chunk size": OK + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "chunk longer": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n",
    "cut short": OK + b"Content-Length: 100\r\n\r\n{",
    "chunks cut short": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "too much": OK + b"Content-Length: 2\r\n\r\n{}x",
    "bad JSON": answer(WHOLE[:-1]),
    "no object": answer(b"[]"),
    "no choices": answer(b"{}"),
    "empty choices": answer(b'{"choices":[]}'),
    "no message": answer(b'{"choices":[{"index":0}]}'),
    "a key twice": answer(b'{"choices":[{"message":{"content":"a","content":"b"}}]}'),
    "half a pair": answer(b'{"choices":[{"message":{"content":"\\ud83d"}}]}'),
    "not UTF-8": answer(b'{"choices":[{"message":{"content":"\xff"}}]}'),
    "NaN": answer(b'{"choices":[{"message":{"content":"a"}}],"x":NaN}'),
    "deep": answer(b'{"choices":' + b"[" * 100000),
    "a receipt already": answer(WHOLE[:-1] + b',"bankml_receipt":{}}'),
    "plain text": answer(b"hello", kind=b"Content-Type: text/plain\r\n"),
    "foreign type": answer(WHOLE, kind=b"Content-Type: application/json; \xff\r\n"),
    "stream: first event": EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"data: {]\n\n") + chunk(b""),
    "stream: nothing": EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b""),
    "stream: only the end": streamed([DONE]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_answer_is_a_502(house, name):
    def chat(asked, write):
        write(BAD[name])
        raise OSError

    with house(chat=chat) as it:
        status, got = it.chat()
        assert it.ask()[0] == 200, "the next request is answered"
    error = json.loads(got)["error"]
    assert (status, error["type"]) == (502, "bad_gateway_error") and "llama-server" in error["message"]
    assert len(it.standin.chats()) == 1, "a chat is never asked for twice"


BROKEN = {
    "cut short": STREAM_HEAD + chunk(STREAM[0]) + chunk(STREAM[1]),
    "cut within an event": STREAM_HEAD + chunk(STREAM[0]) + chunk(STREAM[1][:20]) + chunk(b""),
    "no end": streamed(STREAM[:-1]),
    "bad JSON": streamed([STREAM[0], b"data: {]\n\n", DONE]),
    "two lines of data": streamed([STREAM[0], b"data: {}\ndata: {}\n\n", DONE]),
    "CR alone": streamed([STREAM[0], delta("a").replace(b",", b",\r", 1), DONE]),
    "a forged receipt": streamed([STREAM[0], b'data: {"bankml_receipt":{}}\n\n', DONE]),
    "more after the end": streamed([*STREAM, delta("more")]),
    "the end twice": streamed([*STREAM, DONE]),
    "bad chunk": STREAM_HEAD + chunk(STREAM[0]) + b"xyz\r\n",
    "huge chunk": STREAM_HEAD + chunk(STREAM[0]) + b"4000001\r\n",
    "half a pair": streamed([STREAM[0], delta("x").replace(b'"x"', b'"\\ud83d"'), DONE]),
    "a named event": streamed([STREAM[0], b"event: aside\n" + delta("x"), DONE]),
    "a field without a colon": streamed([STREAM[0], b"data\n" + delta("x"), DONE]),
    "a byte-order mark": streamed([STREAM[0], b"\xef\xbb\xbf" + delta("x"), DONE]),
    "a comment that is not UTF-8": streamed([STREAM[0], b": \xff\n" + delta("x"), DONE]),
    "an end with CR alone": streamed([STREAM[0], b": x\rdata: {}\n" + DONE]),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("pause", [0, 0.05])
def test_a_stream_that_breaks_ends_in_an_error_event_without_a_receipt(house, name, pause):
    def chat(asked, write):
        first = len(STREAM_HEAD + chunk(STREAM[0]))
        write(BROKEN[name][:first])
        time.sleep(pause)
        write(BROKEN[name][first:])
        time.sleep(pause)
        raise OSError

    with house(chat=chat) as it:
        status, got = it.chat(STREAMED)
    events = got.removesuffix(b"\n\n").split(b"\n\n")
    if not pause and status == 502:
        return  # it all came at once, so nothing had been passed on yet
    assert status == 200 and got.startswith(STREAM[0])
    assert json.loads(events[-1].removeprefix(b"data: "))["error"]["code"] == 502
    assert not [one for one in events if b'"engine"' in one] and not got.endswith(DONE)
    assert not check(STREAMED, got).ok


def test_a_stream_that_breaks_and_goes_on_is_ended_soon(house):
    def chat(asked, write):
        write(STREAM_HEAD + chunk(STREAM[0]))
        for number in range(1000):
            write(chunk(delta("x") if number != 5 else b"data: {]\n\n"))
            time.sleep(0.005)

    with house(chat=chat) as it:
        _, got = it.chat(STREAMED)
        assert it.standin.gone.wait(3), "the engine's connection is closed"
    assert got.count(b'"x"') < 25 and b"it is not JSON" in got and b"receipt" not in got


def test_comments_are_passed_on(house):
    parts = [STREAM[0], b": still here\n\n", b": \xc3\xa5\r\n" + delta("x"), b":\n" + DONE]
    with house(chat=streamed(parts)) as it:
        status, got = it.chat(STREAMED)
    assert status == 200 and got.startswith(b"".join(parts[:-1])) and got.endswith(parts[-1])
    assert check(STREAMED, got).ok


def test_an_error_the_engine_streams_is_passed_on_without_a_receipt(house):
    failed = b'data: {"error":{"code":500,"message":"Compute error.","type":"server_error"}}\n\n'
    for parts in ([STREAM[0], failed], [STREAM[0], failed, DONE]):
        with house(chat=streamed(parts)) as it:
            assert it.chat(STREAMED) == (200, b"".join(parts))


def test_an_event_beyond_the_limit(house):
    def chat(asked, write):
        write(STREAM_HEAD + chunk(STREAM[0]))
        for _ in range(20):
            write(chunk(b"x" * 1000))

    with house(chat=chat, limits=Limits(engine_body=10_000)) as it:
        assert b"an event is longer than 10000 bytes" in it.chat(STREAMED)[1]


def test_a_body_without_an_announced_length(house):
    def chat(asked, write):
        write(OK + b"\r\n" + WHOLE)
        raise OSError

    with house(chat=chat) as it:
        assert check(BODY, it.chat()[1]).ok
    with house(chat=chat, limits=Limits(engine_body=100)) as it:
        assert it.chat()[0] == 502


def test_an_engine_that_is_gone(house):
    with house() as it:
        it.standin.stop()
        status, got = it.chat()
        assert status == 502 and b"cannot be reached" in got
        assert it.ask(path="/bankml")[0] == 200


# ---- an engine that is silent


@pytest.mark.parametrize("sent", ["nothing", "half a head", "half a body"])
def test_a_silent_engine_is_a_504(house, sent):
    begun, release = threading.Event(), threading.Event()

    def chat(asked, write):
        write({"nothing": b"", "half a head": answer(WHOLE)[:20], "half a body": answer(WHOLE)[:-20]}[sent])
        begun.set()
        release.wait(20)
        raise OSError

    with house(chat=chat, limits=Limits(engine_silence=0.3)) as it:
        status, got = it.chat()
        assert it.ask()[0] == 200, "the next request is handled"
        release.set()
    error = json.loads(got)["error"]
    assert begun.is_set() and (status, error["type"], error["code"]) == (504, "gateway_timeout_error", 504)
    assert error["message"] == "llama-server sent nothing for 0.3 s" and b"receipt" not in got


@pytest.mark.parametrize("events", [1, 3])
def test_a_stream_that_falls_silent_ends_with_an_error_event(house, events):
    release = threading.Event()

    def chat(asked, write):
        write(STREAM_HEAD)
        for part in STREAM[:events]:
            write(chunk(part))
        release.wait(20)
        raise OSError

    with house(chat=chat, limits=Limits(engine_silence=0.3)) as it:
        status, got = it.chat(STREAMED)
        release.set()
    assert status == 200 and got.startswith(b"".join(STREAM[:events])) and b"receipt" not in got
    last = json.loads(got.rstrip().split(b"\n\n")[-1].removeprefix(b"data: "))
    assert (last["error"]["code"], last["error"]["type"]) == (504, "gateway_timeout_error")


def test_an_engine_that_does_not_say_what_it_serves_is_a_504(house):
    with house(limits=Limits(engine_answer=0.3)) as it:
        assert it.chat()[0] == 200
        it.standin.responding.clear()
        assert it.chat()[0] == 504
        it.standin.responding.set()


# ---- content types


@pytest.mark.parametrize("status", [b"400 Bad Request", b"404 Not Found", b"500 Internal Server Error"])
def test_an_error_of_the_engine_is_json_or_plain_text(house, status):
    page = b"<script>alert(1)</script>"
    html = answer(page, status, kind=b"Content-Type: text/html\r\n")
    with house(chat=html, health=html) as it:
        for method, path, body in (("POST", "/v1/chat/completions", BODY), ("GET", "/health", None)):
            code, headers, got = it.ask(method, path, body)
            assert (code, got) == (int(status[:3]), page)
            assert headers["content-type"] == "text/plain; charset=utf-8"
            assert headers["x-content-type-options"] == "nosniff"
    with house(chat=answer(b"{}", status, kind=b"Content-Type: application/json; charset=latin-1\r\n")) as it:
        assert it.ask("POST", "/v1/chat/completions", BODY)[1]["content-type"] == "application/json; charset=utf-8"
