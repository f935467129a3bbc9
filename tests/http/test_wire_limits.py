"""Each limit at its last passing and its first failing byte, and each deadline, over real sockets."""

import socket
import time

import pytest

from bankml.http.gateway import Gateway
from bankml.http.limits import Limits

MIB = 1 << 20


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def padded(line: bytes, length: int) -> bytes:
    return line + b"a" * (length - len(line))


@pytest.mark.parametrize(("length", "expected"), [(16384, 200), (16385, 400)])
def test_request_line(served, length, expected):
    target = padded(b"/", length - len(b"GET  HTTP/1.1"))
    assert status(served.talk(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", end=True)) == expected


@pytest.mark.parametrize(("length", "expected"), [(16384, 200), (16385, 400)])
def test_header_line(served, length, expected):
    line = padded(b"X: ", length)
    answer = served.talk(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + line + b"\r\n\r\n", end=True)
    assert status(answer) == expected
    if expected == 400:
        assert b"header line 2 is longer than 16384 bytes" in answer


@pytest.mark.parametrize(("count", "expected"), [(100, 200), (101, 400)])
def test_header_lines(served, count, expected):
    lines = b"".join(b"X-%d: 1\r\n" % number for number in range(count - 1))
    assert status(served.talk(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n", end=True)) == expected


def test_a_hundred_lines_of_16_kib(served):
    lines = b"".join(padded(b"X-%d: " % number, 16384) + b"\r\n" for number in range(99))
    assert status(served.talk(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n", end=True)) == 200


@pytest.mark.parametrize(("length", "expected"), [(16 * MIB, 200), (16 * MIB + 1, 413), (17 * MIB, 413)])
def test_body(served, length, expected):
    """The whole body is sent before anything is read: the refusal must survive that."""
    head = (
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length
    )
    answer = served.talk(head + b" " * length, end=True)
    assert status(answer) == expected
    assert expected != 200 or b'"body": 16777216' in answer


@pytest.mark.parametrize("bad", [b"Host: evil.com\r\n", b"Host: localhost\r\nTransfer-Encoding: chunked\r\n"])
def test_a_refusal_survives_17_mib_of_body(serving, read, bad):
    with serving() as served:
        for _ in range(5):
            with served.connect() as client:
                client.sendall(b"POST /x HTTP/1.1\r\n" + bad + b"Content-Length: 17825792\r\n\r\n")
                for _ in range(17):
                    client.sendall(b" " * MIB)
                assert status(read(client)) in (400, 403)


def test_an_endless_line_is_refused_and_not_kept(serving, read):
    with serving() as served, served.connect() as client:
        for _ in range(64):
            client.sendall(b"a" * MIB)
        assert status(read(client)) == 400


def test_an_endless_head_is_refused_at_its_101st_header_line(serving, read):
    with serving() as served, served.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: 1\r\n" * 200_000)
        assert b"more than 100 header lines" in read(client)


def test_a_foreign_host_is_named_even_when_the_head_breaks_a_limit(served):
    assert status(served.talk(b"GET / HTTP/1.1\r\nHost: evil.com\r\nX: " + b"a" * 20000)) == 403


def test_the_33rd_connection_gets_503(serving, read):
    with serving(Limits(spare=60)) as served:
        open_ones = [served.connect() for _ in range(32)]
        for client in open_ones[-1:]:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status(client.recv(65536)) == 200
        begun = time.monotonic()
        with served.connect() as silent, served.connect("engine") as sender, served.connect() as speaker:
            speaker.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status(read(speaker)) == 503 and time.monotonic() - begun < 0.15
            sender.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4194304\r\n\r\n" + b" " * 4 * MIB)
            assert status(read(sender)) == 503
            answer = read(silent)
            assert status(answer) == 503 and b"32 connections are open" in answer
            assert 0.15 < time.monotonic() - begun < 1.0
        for client in open_ones:  # those within the limit are served as ever
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status(client.recv(65536)) == 200
        open_ones.pop().close()
        time.sleep(0.1)
        with served.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status(client.recv(65536)) == 200
        for client in open_ones:
            client.close()


def asks(client, path=b"/"):
    client.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_where_no_connection_is_free_the_one_that_was_idle_longest_gives_way(serving, read):
    with serving(Limits(connections=3, spare=0.2)) as served:
        silent, kept, waiting = (served.connect() for _ in range(3))
        asks(waiting, b"/wait")
        time.sleep(0.3)
        asks(kept)
        assert status(kept.recv(65536)) == 200
        with served.connect() as client:
            asks(client)
            assert status(client.recv(65536)) == 200
            assert read(silent) == b""
            with served.connect() as early:  # nobody has been idle for long enough
                assert status(read(early)) == 503
            asks(kept)
            assert status(kept.recv(65536)) == 200
            served.trial.release.set()
            assert waiting.recv(65536).endswith(b'"waited"')
        for client in (silent, kept, waiting):
            client.close()


def test_a_connection_on_which_something_happens_gives_way_to_nobody(serving, read):
    with serving(Limits(connections=3, spare=0.1)) as served:
        waiting, half, sending = (served.connect() for _ in range(3))
        asks(waiting, b"/wait")
        half.sendall(b"GET / HTTP/1.1\r\n")
        sending.sendall(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
        )
        time.sleep(0.3)
        with served.connect() as client:
            assert status(read(client)) == 503
        half.sendall(b"Host: localhost\r\n\r\n")
        sending.sendall(b'"1234567"')
        served.trial.release.set()
        for client in (waiting, half, sending):
            assert status(client.recv(65536)) == 200
            client.close()


def test_a_request_that_is_not_read_yet_is_not_lost_to_a_newcomer(serving, read, monkeypatch):
    with serving(Limits(connections=2, spare=0.1)) as served, served.connect() as kept, served.connect() as silent:
        admit = Gateway.admit

        def asked_just_before(self, newcomer):  # on the event loop, which so cannot read the request before it decides
            asks(kept)
            return admit(self, newcomer)

        time.sleep(0.2)
        monkeypatch.setattr(Gateway, "admit", asked_just_before)
        with served.connect() as client:
            asks(client)
            assert status(client.recv(65536)) == 200
        assert status(kept.recv(65536)) == 200
        assert read(silent) == b""


def test_an_answer_that_is_still_taken_is_not_lost_to_a_newcomer(serving, read):
    with serving(Limits(connections=2, spare=0.1)) as served, socket.socket() as slow, served.connect() as silent:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(5)
        slow.connect(served.listening.gateway)
        slow.sendall(b"GET /big?200000 HTTP/1.1\r\nHost: localhost\r\n\r\n")  # the kernel takes it whole
        time.sleep(0.3)
        asks(silent)
        assert status(silent.recv(65536)) == 200
        time.sleep(0.2)
        with served.connect() as client:
            asks(client)
            assert status(client.recv(65536)) == 200
        assert read(silent) == b""
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert len(read(slow)) > 200000


def test_many_silent_newcomers_hold_nobody(serving, read):
    limits = Limits(connections=2, excess=4, spare=60)
    with serving(limits) as served:
        first = [served.connect(), served.connect()]
        crowd, statuses = [], []
        for _ in range(12):
            try:
                crowd.append(served.connect())
            except ConnectionResetError:  # the reset was quicker than connect()
                statuses.append(b"reset")
        first[0].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status(first[0].recv(65536)) == 200
        for client in crowd:
            try:
                statuses.append(read(client)[9:12])
            except ConnectionResetError:
                statuses.append(b"reset")
        assert sorted(statuses) == [b"503"] * 4 + [b"reset"] * 8
        for client in first + crowd:
            client.close()


SHORT = Limits(head=0.4, idle=0.4, body_pause=0.4, write_pause=0.5, linger=0.4)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_head_must_come_whole_in_time(serving, read, sent):
    with serving(SHORT) as served, served.connect() as client:
        begun = time.monotonic()
        client.sendall(sent)
        answer = read(client)
        assert 0.35 < time.monotonic() - begun < 0.8
        assert status(answer) == 408 if sent else answer == b""


def test_a_head_that_drips_is_not_given_more_time(serving, read):
    with serving(SHORT) as served, served.connect() as client:
        begun = time.monotonic()
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n":
            client.sendall(bytes([byte]))
            if time.monotonic() - begun > 0.6:
                break
            time.sleep(0.05)
        assert status(read(client)) == 408
        assert time.monotonic() - begun < 1.0


def test_a_second_head_has_its_own_time(serving, read):
    with serving(SHORT) as served, served.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status(client.recv(65536)) == 200
        time.sleep(0.3)
        client.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.3)
        client.sendall(b"Host: localhost\r\n\r\n")
        assert status(client.recv(65536)) == 200
        begun = time.monotonic()
        assert read(client) == b"" and 0.3 < time.monotonic() - begun < 0.8


def test_a_body_may_drip_but_not_pause(serving, read):
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n"
    with serving(SHORT) as served, served.connect() as client, served.connect() as other:
        client.sendall(head)
        other.sendall(head + b"12")
        for byte in b"1234":
            time.sleep(0.25)
            client.sendall(bytes([byte]))
        assert client.recv(65536).endswith(b"1234")
        assert status(read(other)) == 408


def test_a_body_may_not_drip_for_ever(serving, read):
    with serving(Limits(body_pause=0.4, body_time=0.8)) as served, served.connect() as client:
        begun = time.monotonic()
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        client.sendall(b"Content-Length: 100\r\n\r\n")
        while time.monotonic() - begun < 0.7:
            client.sendall(b"1")
            time.sleep(0.05)
        answer = read(client)
        assert status(answer) == 408 and b"the body took longer than 0.8 s" in answer
        assert time.monotonic() - begun > 0.7


def test_a_client_that_reads_nothing_is_dropped(serving):
    with serving(SHORT) as served, served.connect() as client:
        begun = time.monotonic()
        client.sendall(b"GET /drip HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert served.trial.write_failed.wait(4), "write() went on for a client that takes nothing"
        assert 0.45 < time.monotonic() - begun < 3
        with pytest.raises(ConnectionResetError):
            while client.recv(1 << 20):
                pass


def test_a_client_that_reads_slowly_is_not_dropped(serving):
    """A byte every now and then is progress, even after the answer is complete and the connection lingers."""
    length = 8_000_000
    with serving(SHORT) as served, served.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.sendall(b"GET /big?%d HTTP/1.0\r\nHost: localhost\r\n\r\n" % length)
        got = b""
        for _ in range(14):
            time.sleep(0.1)
            got += client.recv(64 * 1024)
        assert len(got) < length / 2, "the client read too fast for this test to mean anything"
        while part := client.recv(1 << 20):
            got += part
        assert got.partition(b"\r\n\r\n")[2] == b"x" * length


def test_a_client_that_never_closes_is_left(serving):
    with serving(SHORT) as served, served.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n")
        time.sleep(0.2)
        client.sendall(b"more")
        time.sleep(0.6)
        with pytest.raises(OSError):
            for _ in range(10):
                client.sendall(b"and more")
                time.sleep(0.02)
