"""How answers go out: order, framing, clients that leave, clients that read slowly, applications that fail."""

import http.client
import json
import socket
import threading
import time

import h11
import pytest

from bankml.http.limits import Limits

HEAD = b"Host: localhost\r\n\r\n"


def get(path: str, version: str = "1.1", *lines: str) -> bytes:
    extra = "".join(line + "\r\n" for line in lines)
    return f"GET {path} HTTP/{version}\r\nHost: localhost\r\n{extra}\r\n".encode()


def post(path: str, body: bytes, *lines: str) -> bytes:
    extra = "".join(line + "\r\n" for line in lines)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{extra}"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def answers(raw: bytes, methods: list[str]) -> list[tuple[int, bytes]]:
    """Reads answers to requests of these methods, in order, with h11 as the client; nothing may be left over."""
    found = []
    for method in methods:
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(raw)
        body, status = b"", 0
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                assert isinstance(event, h11.InformationalResponse), event
        raw = client.trailing_data[0]
        found.append((status, body))
    assert raw == b""
    return found


def test_pipelined_requests_are_answered_in_order(serving):
    with serving() as served:
        requests = [post("/echo", b'"%d"' % number * (number + 1)) for number in range(40)]
        requests[7] = get("/stream?3")
        raw = served.talk(b"".join(requests), end=True)
        found = answers(raw, ["POST"] * 40)
        for number, (status, body) in enumerate(found):
            assert status == 200
            assert body == (b"data: 0\n\ndata: 1\n\ndata: 2\n\n" if number == 7 else b'"%d"' % number * (number + 1))


def test_pipelining_beyond_what_is_kept(serving):
    """More is pipelined than is kept unread while the first answer takes its time."""
    with serving(Limits(ahead=1000)) as served, served.connect() as client:
        body = b" " * 300_000
        client.sendall(get("/wait"))
        sender = threading.Thread(target=client.sendall, args=(post("/echo", body) * 10 + get("/x", "1.0"),))
        sender.start()
        time.sleep(0.2)
        assert len(served.trial.requests) == 1
        served.trial.release.set()
        raw = b""
        while part := client.recv(1 << 20):
            raw += part
        sender.join()
        found = answers(raw, ["POST"] * 12)
        assert [len(body) for _, body in found] == [8] + [300_000] * 10 + [25]


def test_pipelined_bytes_are_not_kept_without_end(serving):
    with serving() as served, served.connect(timeout=0.5) as client:
        client.sendall(get("/wait"))
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 64_000_000:
                sent += client.send(b"GET /x HTTP/1.1\r\n" * 10_000)


def test_a_refusal_after_good_answers_comes_last(serving):
    with serving() as served:
        raw = served.talk(get("/a") + get("/b") + b"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n" + get("/c"))
        assert [status for status, _ in answers(raw, ["GET"] * 3)] == [200, 200, 403]
        assert [request.path for request in served.trial.requests] == ["/a", "/b"]


def test_head_is_answered_without_a_body(serving):
    with serving() as served:
        raw = served.talk(b"HEAD /x HTTP/1.1\r\n" + HEAD + b"HEAD /stream HTTP/1.1\r\n" + HEAD + get("/x"), end=True)
        assert b"Content-Length: 25\r\n" in raw
        assert [body for _, body in answers(raw, ["HEAD", "HEAD", "GET"])] == [b"", b"", b'{"path": "/x", "body": 0}']


def test_http_1_0_is_streamed_until_the_end_of_the_connection(serving):
    with serving() as served:
        head, _, body = served.talk(get("/stream?3", "1.0")).partition(b"\r\n\r\n")
        assert b"chunked" not in head and b"Connection: close" in head
        assert body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_expect_100_continue(serving, read):
    with serving() as served, served.connect() as client:
        head, body = post("/echo", b"12345", "Expect: 100-continue", "Connection: close").split(b"\r\n\r\n")
        client.sendall(head + b"\r\n\r\n")
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert read(client).endswith(b"12345")
    with serving() as served:  # refused before the body: no 100
        raw = served.talk(post("/echo", b"", "Expect: 100-continue").replace(b"Length: 0", b"Length: 99999999"))
        assert raw.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("end", ["half-close", "close"])
def test_a_body_shorter_than_announced(serving, end):
    with serving() as served, served.connect() as client:
        client.sendall(post("/echo", b"12345")[:-2])
        if end == "half-close":
            client.shutdown(socket.SHUT_WR)
            raw = client.recv(65536)
            assert raw.startswith(b"HTTP/1.1 400 ") and b"3 of 5 bytes" in raw
        client.close()
        assert " 400 " in served.lines(1)[0]
        assert not served.trial.requests


def test_half_a_head(serving):
    with serving() as served:
        assert served.talk(b"GET / HTTP/1.1\r\nHost:", end=True).startswith(b"HTTP/1.1 400 ")


def test_a_half_closed_client_still_gets_its_answer(serving, read):
    with serving() as served, served.connect() as client:
        client.sendall(get("/wait"))
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
        assert not served.trial.cancelled_after
        served.trial.release.set()
        assert read(client).endswith(b'"waited"')


@pytest.mark.parametrize("pipelined", [0, 300_000])
@pytest.mark.parametrize("half_close_first", [False, True])
def test_hanging_up_cancels(serving, half_close_first, pipelined):
    with serving() as served:
        client = served.connect()
        client.sendall(get("/wait") + b" " * pipelined)
        if half_close_first:
            client.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        assert not served.trial.cancelled_after
        left = time.monotonic()
        client.close()
        while not served.trial.cancelled_after and time.monotonic() < left + 2:
            time.sleep(0.005)
        assert served.trial.cancelled_after
        assert time.monotonic() - left < 0.3
        assert " 499 " in served.lines(1)[0]


@pytest.mark.parametrize("pipelined", [0, 300_000])
def test_a_reset_cancels(serving, pipelined):
    with serving() as served:
        client = served.connect()
        client.sendall(get("/wait") + b" " * pipelined)
        time.sleep(0.1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        time.sleep(0.3)
        assert served.trial.cancelled_after


def test_hanging_up_in_a_stream_ends_it(serving):
    with serving() as served:
        client = served.connect()
        client.sendall(get("/slow-stream"))
        client.recv(100)
        client.close()
        line = served.lines(1)[0]
        assert "/slow-stream" in line and "ttft=" in line


def test_32_clients_at_once_get_every_byte(serving, read):
    with serving() as served:
        count, results = 2000, {}
        expected = b"".join(b"data: %d\n\n" % number for number in range(count))

        def ask(number: int) -> None:
            connection = http.client.HTTPConnection(*served.listening.gateway, timeout=10)
            connection.request("GET", f"/stream?{count}")
            first = connection.getresponse().read()
            connection.request("POST", "/echo", b"%d" % number * 100_000, {"Content-Type": "application/json"})
            results[number] = (first, connection.getresponse().read())
            connection.close()

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {number: (expected, b"%d" % number * 100_000) for number in range(32)}


@pytest.mark.parametrize("path", ["/crash", "/nothing"])
def test_a_defect_before_the_answer_is_a_500(serving, path):
    with serving() as served:
        (first, second) = answers(served.talk(get(path) + get("/x"), end=True), ["GET", "GET"])
        assert first[0] == 500 and set(json.loads(first[1])["error"]) == {"code", "message", "type"}
        assert second[0] == 200, "the connection is as good as before"
        assert b"secret" not in first[1] and b"Traceback" not in first[1]
        log = "\n".join(served.lines(2))
        assert "secret" not in log
        assert ("ValueError" if path == "/crash" else "no complete response") in log


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_defect_within_a_stream_aborts_it(serving, read, version):
    with serving() as served, served.connect() as client:
        client.sendall(get("/crash-midway", version))
        with pytest.raises(ConnectionResetError):
            read(client)
        line = served.lines(1)[0]
        assert "aborted: ValueError" in line and "secret" not in line


def test_an_answer_that_is_no_http_aborts(serving, read):
    with serving() as served, served.connect() as client:
        client.sendall(get("/bad-header"))
        with pytest.raises(ConnectionResetError):
            read(client)
    with serving() as served:
        assert served.talk(get("/x"), end=True).startswith(b"HTTP/1.1 200 ")


def test_ipv6(serving):
    with serving(host="::1") as served:
        assert served.listening.gateway[0] == "::1"
        for address in ("gateway", "engine"):
            raw = served.talk(
                b"GET / HTTP/1.1\r\nHost: [::1]:%d\r\n\r\n" % served.listening.gateway[1], address, end=True
            )
            assert raw.startswith(b"HTTP/1.1 200 ")
        client = served.connect()
        client.sendall(get("/wait"))
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.3)
        assert not served.trial.cancelled_after
        client.close()
        time.sleep(0.3)
        assert served.trial.cancelled_after
