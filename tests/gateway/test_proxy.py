"""In front of a stand-in for llama-server, over real sockets: what is passed on, what is added, what is refused."""

import contextlib
import hashlib
import io
import json
import os
import socket
import threading
import time
from types import SimpleNamespace

import openai
import pytest

from bankml.gate.identity import FileIdentity
from bankml.gate.verify import Verified
from bankml.gateway import server
from bankml.gateway.limits import Limits
from bankml.gateway.proxy import Proxy
from bankml.gateway.upstream import Upstream
from bankml.gateway.vouch import Vouch
from bankml.receipt.check import check
from tests.gateway.standin import (
    DONE,
    KEPT,
    LAST,
    MODELS,
    PIECES,
    ROLE,
    STREAM,
    STREAM_HEAD,
    TEXT,
    WHOLE,
    StandIn,
    answer,
    chunk,
    delta,
    streamed,
)

BODY = b'{"messages":[{"role":"user","content":"Say hello."}], "max_tokens":4}'
STREAMED = b'{"messages":[{"role":"user","content":"Say hello."}], "stream":true}'
RECEIPT_FIELDS = [
    "bankml", "engine", "model_sha256", "guard", "prompt_tokens", "completion_tokens", "ttft_ms", "wall_ms",
    "response_sha256", "request_sha256", "signed",
]  # fmt: skip


class House:
    """A verified file, a stand-in that serves it, and a gateway in front."""

    def __init__(self, path, limits=None, **standin):
        path.write_bytes(b"weights")
        self.path = path
        self.standin = StandIn(str(path), **standin)
        self.limits = limits or Limits()
        self.log = io.StringIO()

    def __enter__(self):
        found, up = [], threading.Event()
        self.upstream = Upstream(self.standin.start(), self.limits)
        verdict = SimpleNamespace(kind="play", name=self.path.name)
        path = str(self.path)
        verified = Verified(path, "ab" * 32, verdict, None, FileIdentity.of(path), path, 0.0)
        proxy = Proxy(Vouch(verified, self.upstream, lambda: None))

        def ready(listening):
            found.append(listening)
            up.set()

        run = lambda: server.serve(proxy, ("127.0.0.1", 0), limits=self.limits, ready=ready, log=self.log)  # noqa: E731
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        assert up.wait(5)
        self.listening = found[0]
        self.port = self.listening.gateway[1]
        return self

    def __exit__(self, *_):
        self.listening.stop()
        self.thread.join(6)
        self.upstream.close()
        self.standin.stop()
        assert not self.thread.is_alive()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def ask(self, method="GET", path="/health", body=None, headers=""):
        """(status, headers in lower case, body) of one request on a connection of its own."""
        with self.connect() as client:
            client.sendall(question(method, path, body, headers))
            return read_answer(client)

    def chat(self, body=BODY):
        status, _, got = self.ask("POST", "/v1/chat/completions", body)
        return status, got


def question(method, path, body=None, headers=""):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + (body or b"")


def read_answer(client):
    reading = client.makefile("rb")
    status = int(reading.readline().split()[1])
    headers = {}
    while line := reading.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    if "content-length" in headers:
        return status, headers, reading.read(int(headers["content-length"]))
    body = b""
    while size := int(reading.readline(), 16):
        body += reading.read(size)
        assert reading.readline() == b"\r\n"
    return status, headers, body


@pytest.fixture
def house(tmp_path):
    def build(**options):
        return House(tmp_path / "m.gguf", **options)

    return build


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# ---- what is passed on and added


def test_a_whole_answer_keeps_its_bytes_and_gets_a_receipt(house):
    with house() as it:
        status, got = it.chat()
    assert status == 200 and got.startswith(WHOLE[:-1] + b',"bankml_receipt":')
    receipt = json.loads(got)["bankml_receipt"]
    assert list(receipt) == RECEIPT_FIELDS
    assert receipt["engine"] == "llama.cpp b11192-0" and receipt["model_sha256"] == "ab" * 32
    assert (receipt["prompt_tokens"], receipt["completion_tokens"], receipt["ttft_ms"]) == (15, 4, None)
    assert receipt["response_sha256"] == sha256(TEXT.encode()) and receipt["request_sha256"] == sha256(BODY)
    assert receipt["signed"] is False and check(BODY, got).ok
    assert it.standin.chats()[0].body == BODY, "the request goes on as it came"


def test_a_stream_keeps_its_bytes_and_gets_one_more_event(house):
    with house() as it:
        status, got = it.chat(STREAMED)
    before, after = b"".join(STREAM[:-1]), DONE
    assert status == 200 and got.startswith(before) and got.endswith(after)
    event = got[len(before) : -len(after)]
    receipt = json.loads(event.removeprefix(b"data: "))["bankml_receipt"]
    assert event.endswith(b"\n\n") and list(receipt) == RECEIPT_FIELDS
    assert (receipt["prompt_tokens"], receipt["completion_tokens"]) == (15, 4), "of the timings, for lack of usage"
    assert 0 < receipt["ttft_ms"] <= receipt["wall_ms"]
    assert receipt["response_sha256"] == sha256(TEXT.encode()) and check(STREAMED, got).ok


@pytest.mark.parametrize("size", [1, 2, 7, 100, 10**6])
@pytest.mark.parametrize("chunked_by", ["chunks", "one byte each", "all in one"])
def test_however_the_bytes_are_cut(house, size, chunked_by):
    whole = b"".join(STREAM)
    parts = {"chunks": STREAM, "one byte each": [whole[i : i + 1] for i in range(len(whole))], "all in one": [whole]}
    data = streamed(parts[chunked_by])

    def chat(asked, write):
        for start in range(0, len(data), size):
            write(data[start : start + size])

    with house(chat=chat) as it:
        status, got = it.chat(STREAMED)
    assert status == 200 and check(STREAMED, got).ok and check(STREAMED, got).text == TEXT
    assert got.startswith(whole.removesuffix(DONE))


def test_events_come_as_they_arrive(house):
    go_on = threading.Event()

    def chat(asked, write):
        write(STREAM_HEAD + chunk(STREAM[0]))
        for part in STREAM[1:]:
            assert go_on.wait(5)
            go_on.clear()
            write(chunk(part[:5]))
            write(chunk(part[5:]))
        write(chunk(b""))

    with house(chat=chat) as it, it.connect() as client:
        client.sendall(question("POST", "/v1/chat/completions", STREAMED))
        got = b""
        for piece in PIECES:
            while piece.encode() not in got:
                got += client.recv(65536)
            go_on.set()
        for _ in range(2):
            time.sleep(0.1)
            go_on.set()
        while not got.endswith(b"\r\n0\r\n\r\n"):
            got += client.recv(65536)
    assert b"bankml_receipt" in got


@pytest.mark.parametrize(
    ("path", "body"),
    [("/health", b'{"status":"ok"}'), ("/v1/health", None), ("/v1/models", MODELS), ("/props", None)],
)
def test_what_is_only_looked_at(house, path, body):
    with house() as it:
        status, headers, got = it.ask(path=path)
        with it.connect() as client:
            client.sendall(question("HEAD", path, headers="Connection: close\r\n"))
            head = client.makefile("rb").read()
        assert head.startswith(b"HTTP/1.1 %d " % status) and head.endswith(b"\r\n\r\n")
        assert "access-control-allow-origin" not in headers
    assert status == (404 if path == "/v1/health" else 200)  # the stand-in has no /v1/health, and says so
    assert body is None or got == body
    if path == "/props":
        assert json.loads(got)["model_path"] == str(it.path)


def test_bankml_says_what_was_verified(house):
    with house() as it:
        said = json.loads(it.ask(path="/bankml")[2])
    assert said["model"] == "m" and said["path"] == str(it.path) and said["model_sha256"] == "ab" * 32
    assert said["upstream"] == it.upstream.shown and said["verified_at"] == "1970-01-01T00:00:00Z"
    assert not it.standin.asked, "the engine is not needed for that"


def test_paths_that_are_not_proxied(house):
    with house() as it:
        for path in ("/tokenize", "/completion", "/slots/0", "/api/chat", "/", "/props/", "//props"):
            assert it.ask("POST", path, b"{}")[0] == 404
        status, headers, _ = it.ask("POST", "/props", b"{}")
        assert (status, headers["allow"]) == (405, "GET, HEAD")
        assert it.ask("GET", "/v1/chat/completions")[0] == 405
    assert not it.standin.asked


# ---- pages of a browser


def test_a_page_of_another_origin_gets_no_leave_and_a_rebound_name_gets_403(house):
    page = "Origin: http://evil.example\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Site: cross-site\r\n"
    with house() as it:
        status, headers, _ = it.ask("GET", "/health", headers=page)
        assert status == 200 and not [name for name in headers if name.startswith("access-control")]
        preflight = page + "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n"
        status, headers, _ = it.ask("OPTIONS", "/v1/chat/completions", headers=preflight)
        assert status == 405 and not [name for name in headers if name.startswith("access-control")]
        with it.connect() as client:  # what a page may send without a preflight
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
            assert read_answer(client)[0] == 415
        for host in ("evil.example", "localhost.evil.com", f"evil.example:{it.port}"):
            with it.connect() as client:
                client.sendall(b"GET /health HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode())
                assert read_answer(client)[0] == 403
    assert not it.standin.chats()


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


# ---- vouching


def test_another_file_in_the_place_of_the_verified_one(house):
    with house() as it:
        assert it.chat()[0] == 200
        os.utime(it.path, ns=(1, 1))
        for status, _, got in (it.ask("POST", "/v1/chat/completions", BODY), it.ask(), it.ask(path="/v1/models")):
            assert status == 503 and b"changed since it was verified" in got and b"receipt" not in got
    assert len(it.standin.chats()) == 1


def test_an_engine_that_serves_another_file(house, tmp_path):
    with house() as it:
        it.standin.model_path = str(tmp_path / "other.gguf")
        status, got = it.chat()
        assert status == 503 and b"does not serve the verified file m.gguf" in got and str(tmp_path).encode() not in got
        (tmp_path / "link.gguf").symlink_to(it.path)
        it.standin.model_path = str(tmp_path / "link.gguf")
        assert it.chat()[0] == 200, "the same canonical path"
    assert len(it.standin.chats()) == 1


# ---- connections


def test_connections_are_kept_and_reopened_after_the_hundredth_request(house):
    with house() as it:
        for _ in range(120):
            assert it.ask()[0] == 200
        assert it.standin.connections <= 4
        before = it.standin.connections
        for number in range(60):
            assert it.chat(STREAMED if number % 2 else BODY)[0] == 200
    assert len(it.standin.chats()) == 60 and it.standin.connections - before <= 2


def test_a_kept_connection_the_engine_closed_meanwhile(house):
    with house(closes_after=3) as it:
        for _ in range(20):
            assert it.chat()[0] == 200
    with house() as it:
        assert it.chat()[0] == 200
        kept = it.upstream._kept[-1][1]
        kept._socket.shutdown(socket.SHUT_RDWR)
        assert it.chat()[0] == 200
    assert len(it.standin.chats()) == 2


@pytest.mark.parametrize("begun", [True, False])
def test_hanging_up_ends_the_engines_work(house, begun):
    def chat(asked, write):
        write(STREAM_HEAD + (chunk(STREAM[0]) if begun else b""))
        while True:
            write(chunk(delta("x")) if begun else b"")
            if left.is_set():
                write(chunk(delta("x")))  # the second of these meets a closed connection
            time.sleep(0.01)

    left = threading.Event()
    with house(chat=chat) as it:
        with it.connect() as client:
            client.sendall(question("POST", "/v1/chat/completions", STREAMED))
            if begun:
                client.recv(65536)
            else:
                time.sleep(0.2)
        until = time.monotonic() + 3
        while "499" not in it.log.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        left.set()
        assert it.standin.gone.wait(3)
    assert " 499 " in it.log.getvalue() and "cancelled" in it.log.getvalue()


def test_stopping_while_a_stream_runs(house):
    def chat(asked, write):
        write(STREAM_HEAD)
        while True:
            write(chunk(delta("x")))
            time.sleep(0.01)

    with house(chat=chat) as it, it.connect() as client:
        client.sendall(question("POST", "/v1/chat/completions", STREAMED))
        client.recv(65536)
        begun = time.monotonic()
        it.listening.stop()
        it.thread.join(5)
        assert time.monotonic() - begun < 2 and it.standin.gone.wait(2)


def test_32_clients_at_once_get_every_byte_while_one_reads_nothing(house):
    text = "x" * 50_000

    def chat(asked, write):
        if b"slow" in asked.body:
            write(STREAM_HEAD + chunk(STREAM[0]))
            while True:
                write(chunk(delta(text)))
        for part in (STREAM_HEAD, *(chunk(delta(text)) for _ in range(20)), chunk(DONE), chunk(b"")):
            write(part)

    results = []
    with house(chat=chat) as it, it.connect() as slow:
        slow.sendall(question("POST", "/v1/chat/completions", b'{"slow":1}'))
        time.sleep(0.3)

        def one():
            status, got = it.chat(STREAMED)
            results.append((status, check(STREAMED, got).ok, len(check(STREAMED, got).text)))

        threads = [threading.Thread(target=one) for _ in range(31)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15)
    assert results == [(200, True, 20 * 50_000)] * 31


def test_a_slow_reader_gets_every_byte(house):
    def chat(asked, write):
        write(STREAM_HEAD)
        for number in range(200):
            write(chunk(delta(str(number % 10) * 50_000)))
        write(chunk(DONE) + chunk(b""))

    with house(chat=chat) as it, it.connect() as client:
        client.sendall(question("POST", "/v1/chat/completions", STREAMED))
        time.sleep(0.5)  # 10 MB do not fit into the sockets between, so the engine is not read from meanwhile
        _, _, got = read_answer(client)
    assert check(STREAMED, got).ok and len(check(STREAMED, got).text) == 200 * 50_000


# ---- clients


def test_the_openai_client(house):
    with house() as it:
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{it.port}/v1", api_key="none", max_retries=0)
        messages = [{"role": "user", "content": "Say hello."}]
        whole = client.chat.completions.create(model="m", messages=messages)
        assert whole.choices[0].message.content == TEXT and whole.bankml_receipt["signed"] is False
        got = [
            event.choices[0].delta.content or ""
            for event in client.chat.completions.create(model="m", messages=messages, stream=True)
            if event.choices
        ]
        assert "".join(got) == TEXT
        assert [model.id for model in client.models.list()] == ["m"]
        client.close()


def test_the_log_has_counts_and_no_words(house):
    with house() as it, contextlib.suppress(OSError):
        it.chat()
        it.chat(STREAMED)
        until = time.monotonic() + 2
        while it.log.getvalue().count("\n") < 2 and time.monotonic() < until:
            time.sleep(0.01)
    for line in it.log.getvalue().splitlines():
        assert "prompt=15 cached=14 completion=4 length" in line and "hello" not in line
    assert KEPT and ROLE  # what the stand-in's answers are made of
