"""In front of a stand-in for llama-server, over real sockets: what is passed on, what is added, what is refused."""

import contextlib
import hashlib
import json
import os
import socket
import threading
import time

import openai
import pytest

from bankml.receipt.check import check
from tests.upstream.front import BODY, STREAMED, House, question, read_answer
from tests.upstream.standin import (
    DONE,
    KEPT,
    MODELS,
    PIECES,
    ROLE,
    STREAM,
    STREAM_HEAD,
    TEXT,
    WHOLE,
    chunk,
    delta,
    streamed,
)

RECEIPT_FIELDS = [
    "bankml", "engine", "model_sha256", "guard", "prompt_tokens", "completion_tokens", "ttft_ms", "wall_ms",
    "response_sha256", "request_sha256", "finish_reason", "signed",
]  # fmt: skip


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
    assert receipt["engine"].startswith("llama.cpp b11192-0 (proven: the file; not: how it was loaded")
    assert receipt["model_sha256"] == "ab" * 32
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
        while not it.upstream._kept:  # the worker returns it after the response was sent
            time.sleep(0.01)
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
