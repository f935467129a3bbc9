"""Answers that the event loop gives itself: in their order, at the pace of whoever reads, never instead of others."""

import contextlib
import io
import socket
import threading
import time

from bankml.http import server
from bankml.http.exchange import CompleteResponse, RequestOutcome
from bankml.http.limits import Limits
from tests.http.conftest import Served, Trial, read_all
from tests.http.test_wire_answers import answers, get, post

KIB = 1024


class Loop:
    """What is known at once: /now, /now-big; and what goes wrong there: /crash."""

    def __init__(self):
        self.asked = []
        self.threads = set()

    def __call__(self, request):
        self.asked.append(request.path)
        self.threads.add(threading.current_thread())
        if request.path == "/crash":
            raise ValueError("the secret words of a message")
        if not request.path.startswith("/now"):
            return None
        return CompleteResponse(200, b"x" * 256 * KIB if request.path == "/now-big" else b'"now"'), RequestOutcome(
            200, note="at once"
        )


@contextlib.contextmanager
def serving(limits=None):
    trial, at_once, log, found, up = Trial(), Loop(), io.StringIO(), [], threading.Event()

    def ready(listening):
        found.append(listening)
        up.set()

    def run():
        server.serve(trial, ("127.0.0.1", 0), limits=limits, ready=ready, log=log, at_once=at_once)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert up.wait(5)
    try:
        yield Served(trial, found[0], log, thread), at_once
    finally:
        trial.release.set()
        found[0].stop()
        thread.join(6)
        assert not thread.is_alive(), "the server did not end"


def test_answers_keep_the_order_of_what_was_asked():
    paths = ["/now", "/a", "/now", "/now", "/b", "/now"]
    with serving() as (served, at_once):
        raw = served.talk(b"".join(map(get, paths[:-1])) + get(paths[-1], "1.1", "Connection: close"))
        assert [body for _, body in answers(raw, ["GET"] * 6)] == [
            b'"now"' if path == "/now" else b'{"path": "%s", "body": 0}' % path.encode() for path in paths
        ]
        assert at_once.asked == paths
        assert at_once.threads == {served.thread}
        assert [request.path for request in served.trial.requests] == ["/a", "/b"]
        lines = served.lines(6)
        assert sum(" /now 200 5B " in line and line.endswith(" at once") for line in lines) == 4


def test_a_head_gets_no_body_and_a_body_is_seen():
    with serving() as (served, _):
        raw = served.talk(b"HEAD /now HTTP/1.1\r\nHost: localhost\r\n\r\n" + post("/now", b"{}"), end=True)
        assert answers(raw, ["HEAD", "POST"]) == [(200, b""), (200, b'"now"')]
        assert " HEAD /now 200 0B " in served.lines(2)[0]


def test_a_thousand_pipelined_requests_are_answered_and_hold_up_nobody():
    with serving() as (served, _), served.connect() as crowd, served.connect() as other:
        sender = threading.Thread(target=crowd.sendall, args=(get("/now") * 3000 + get("/now", "1.0"),))
        sender.start()
        other.sendall(get("/a", "1.0"))
        assert answers(read_all(other), ["GET"])[0][0] == 200
        raw = read_all(crowd)
        sender.join(5)
        assert raw.count(b"HTTP/1.1 200 OK") == 3001


def test_a_client_that_does_not_read_is_not_answered_further():
    with serving(Limits(write_pause=60)) as (served, at_once), served.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * KIB)
        client.sendall(get("/now-big") * 400)
        other = answers(served.talk(get("/a", "1.0")), ["GET"])
        assert other[0][0] == 200
        until = time.monotonic() + 0.5
        while len(at_once.asked) < 100 and time.monotonic() < until:
            time.sleep(0.01)
        assert len(at_once.asked) < 100
        client.settimeout(1)
        got = 0
        while got < 3 * 256 * KIB:
            got += len(client.recv(1 << 16))
        assert served.talk(get("/a", "1.0"))


def test_a_defect_there_is_the_applications_to_tell():
    with serving() as (served, _):
        raw = served.talk(get("/crash", "1.0"))
        assert answers(raw, ["GET"])[0][0] == 500
        assert b"secret" not in raw
        assert "failed: ValueError" in served.lines(1)[0]


def test_the_last_answer_before_the_end_is_whole():
    with serving() as (served, _), served.connect() as client:
        client.sendall(get("/now"))
        assert client.recv(4096).endswith(b'"now"')
        served.listening.stop()
        assert read_all(client) == b""
