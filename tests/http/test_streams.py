"""Streams over sockets: a client that does not read delays nobody and is bounded; a silent stream gets pings."""

import http.client
import re
import threading

import pytest

from bankml.http.limits import Limits

MIB = 1 << 20


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_a_client_that_does_not_read_its_stream_delays_no_other(serving):
    """The worker holds the model's lock while it writes: 16 MB to a client that reads nothing must not block it."""
    with serving() as served, served.connect() as slow:
        slow.sendall(get("/model?16000"))
        served.lines(1, within=10)  # the slow client's response is computed and queued, and nothing of it was read
        with served.connect() as quick:
            quick.sendall(get("/model?1"))
            assert quick.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        got = 0
        while got < 16_000_000:
            got += len(slow.recv(1 << 20))


def test_a_stream_beyond_the_queue_disconnects_its_client_and_cancels(serving):
    with serving(Limits(backlog=MIB)) as served, served.connect() as slow, served.connect() as other:
        slow.sendall(get("/flood"))
        assert served.trial.write_failed.wait(10), "write() must fail, not wait"
        line = served.lines(1)[0]
        assert " 499 " in line and (unread := re.search(r"disconnected: the client left (\d+) bytes unread", line))
        assert MIB <= int(unread[1]) <= MIB + 65536
        with pytest.raises(ConnectionResetError):
            while slow.recv(MIB):
                pass
        other.sendall(get("/x"))
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_the_model_is_free_after_a_client_was_disconnected(serving):
    with serving(Limits(backlog=MIB)) as served, served.connect() as slow, served.connect() as quick:
        slow.sendall(get("/model?100000"))
        assert served.trial.write_failed.wait(10)
        quick.sendall(get("/model?1"))
        assert quick.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_a_silent_stream_has_its_head_at_once_and_then_pings(serving):
    with serving() as served:
        client = http.client.HTTPConnection(*served.listening.gateway, timeout=5)
        client.request("GET", "/silent-stream")
        response = client.getresponse()  # nothing is released yet
        assert (response.status, response.getheader("content-type")) == (200, "text/event-stream")
        for _ in range(3):
            assert (response.readline(), response.readline()) == (b": ping\n", b"\n")
        served.trial.release.set()
        rest = response.read()
        assert rest.replace(b": ping\n\n", b"") == b"data: 1\n\ndata: 2\n\n"
        client.request("GET", "/x")
        assert client.getresponse().status == 200, "no ping follows the end of the stream"


def test_pings_end_with_their_client(serving):
    with serving() as served:
        client = served.connect()
        client.sendall(get("/silent-stream"))
        while b": ping" not in client.recv(1 << 16):
            pass
        client.close()
        served.trial.release.set()
        assert "/silent-stream" in served.lines(1)[0]


def test_a_stream_that_speaks_gets_no_ping(serving):
    with serving() as served:
        served.trial.release.set()
        client = http.client.HTTPConnection(*served.listening.gateway, timeout=5)
        client.request("GET", "/silent-stream")
        assert client.getresponse().read() == b"data: 1\n\ndata: 2\n\n"
        threads = [one for one in threading.enumerate() if "ping" in one.name]
        assert not threads, "a timer of the event loop, no thread"


def test_no_memory_is_a_503_and_not_the_end(serving, read):
    with serving() as served:
        got = served.talk(b"GET /memory HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 503 ") and b"there is not enough memory for this request" in got
        with served.connect() as client:
            client.sendall(get("/x"))
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_no_memory_for_a_thread_is_a_503(serving, monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    with serving() as served, served.connect() as client:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refused)
            client.sendall(get("/x"))
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
        client.sendall(get("/x"))
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 "), "the connection goes on"
