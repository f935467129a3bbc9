"""The connection without sockets: joined with an h11 client in memory, cut anywhere, and at each state's deadline."""

from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.errors import Busy, RequestError
from bankml.http import rules
from bankml.http.head import HeadReader, MessageHead
from bankml.http.limits import Limits
from bankml.http.wire import CloseAction, Connection, ConnectionState, DispatchRequest, RequestRejected, Send

LIMITS = Limits()
GOOD = b"GET /a?b HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = (
    b"POST /p HTTP/1.1\r\nHost: [::1]:8\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    b"Content-Length: 7\r\n\r\n[1,2,3]"
)
BAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\n\r\n"
LONG = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 300 + b"\r\n\r\n"


class Joined:
    """A connection whose requests are answered at once with what was asked; everything that goes out is gathered."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.connection = Connection("gateway", limits, 0.0)
        self.sent = b""
        self.asked: list[tuple] = []
        self.endings: list[CloseAction] = []
        self.refused: list[RequestRejected] = []

    def perform(self, actions) -> None:
        for action in actions:
            if isinstance(action, Send):
                self.sent += action.data
            elif isinstance(action, DispatchRequest):
                request = action.request
                self.asked.append((request.method, request.path, request.query, request.body))
                body = request.body or b"none"
                self.sent += self.connection.begin(200, "text/plain", (), len(body)) + self.connection.body(body)
                self.perform(self.connection.end(1.0))
                self.perform(self.connection.advance(1.0))
            elif isinstance(action, RequestRejected):
                self.refused.append(action)
            else:
                self.endings.append(action)

    def receive(self, data: bytes) -> None:
        self.perform(self.connection.received(data, 1.0))

    def without_dates(self) -> bytes:
        lines = self.sent.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"").split(b"\r\n")
        return b"\r\n".join(line for line in lines if not line.startswith(b"Date: "))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.sampled_from([GOOD, POST, BAD, LONG]), min_size=1, max_size=4), st.lists(st.integers(0, 2000)))
def test_however_the_bytes_are_cut_the_answers_are_the_same(messages, places):
    limits = Limits(head_line=200)
    whole, parts = Joined(limits), Joined(limits)
    data = b"".join(messages)
    whole.receive(data)
    for part in cut(data, places):
        if part:
            parts.receive(part)
    assert parts.without_dates() == whole.without_dates()
    assert (parts.asked, parts.endings) == (whole.asked, whole.endings)
    assert [str(refused.error) for refused in parts.refused] == [str(refused.error) for refused in whole.refused]
    good = next((n for n, message in enumerate(messages) if message in (BAD, LONG)), len(messages))
    assert len(whole.asked) == good and len(whole.refused) == (good < len(messages))


@given(st.binary(max_size=400))
def test_any_bytes_are_answered_or_awaited(data):
    """No bytes raise anything: they are a request, the beginning of one, or refused."""
    joined = Joined(Limits(head_line=100))
    joined.receive(data)
    joined.perform(joined.connection.ended(2.0))
    assert (
        joined.endings in ([CloseAction.CLOSE], [CloseAction.HALF_CLOSE])
        or joined.connection.state is ConnectionState.CLOSED
    )


HEADER_LINES = [b"Host: localhost", b"Host: evil", b"X: \x00", b" y", b"Content-Length: 1", b"Expect: 1", b"\xff: 1"]
HEADER_LINES += [b"Transfer-Encoding: x", b"Upgrade: h2c", b"Connection: close", b"no colon"]
REQUEST_LINES = [b"GET / HTTP/1.1", b"POST / HTTP/1.0", b"HEAD * HTTP/1.1", b"X", b"GET http://evil/ HTTP/1.1"]


@given(st.lists(st.sampled_from(HEADER_LINES), max_size=6), st.sampled_from(REQUEST_LINES))
def test_a_foreign_host_is_always_the_first_thing_said(lines, request_line):
    joined = Joined()
    joined.receive(request_line + b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n")
    if b"Host: evil" in lines or b"evil" in request_line:
        assert joined.refused[0].error.status == 403 and not joined.asked


def test_in_memory_with_an_h11_client():
    joined, client = Joined(), h11.Connection(h11.CLIENT)
    for number in range(3):
        body = b"%d" % number * (number * 1000)
        headers = [("Host", "localhost"), ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        joined.receive(client.send(h11.Request(method="POST", target=f"/{number}", headers=headers)))
        if body:
            joined.receive(client.send(h11.Data(data=body)))
        client.send(h11.EndOfMessage())
        client.receive_data(joined.sent)
        joined.sent = b""
        response = client.next_event()
        assert isinstance(response, h11.Response) and response.status_code == 200
        got = b""
        while isinstance(event := client.next_event(), h11.Data):
            got += event.data
        assert isinstance(event, h11.EndOfMessage) and got == (body or b"none")
        client.start_next_cycle()
    assert joined.connection.state is ConnectionState.IDLE


DEADLINES = [
    # (bytes received at 1 s, the deadline then, what expires with what)
    (b"", 30.0, ConnectionState.IDLE, [CloseAction.CLOSE]),
    (b"GET / HTTP/1.1\r\n", 30.0, ConnectionState.HEAD, 408),
    (POST[:-1], 31.0, ConnectionState.BODY, 408),
    (BAD, 11.0, ConnectionState.LINGER, [CloseAction.ABORT]),
    (GOOD, None, ConnectionState.ANSWER, []),
]


@pytest.mark.parametrize(("data", "deadline", "state", "outcome"), DEADLINES)
def test_the_table_of_deadlines(data, deadline, state, outcome):
    connection = Connection("gateway", LIMITS, 0.0)
    if data:
        connection.received(data, 1.0)
    assert (connection.state, connection.deadline) == (state, deadline)
    actions = connection.expired(40.0, unsent=False)
    if isinstance(outcome, int):
        assert f"HTTP/1.1 {outcome} ".encode() in actions[0].data and actions[2] is CloseAction.HALF_CLOSE
    else:
        assert actions == outcome


def test_idle_and_head_after_the_first_request():
    connection = Connection("gateway", LIMITS, 0.0)
    connection.received(GOOD, 10.0)
    connection.begin(200, "text/plain", (), 0)
    connection.end(20.0)
    connection.advance(20.0)
    assert (connection.state, connection.deadline) == (ConnectionState.IDLE, 50.0)
    connection.received(b"G", 45.0)
    assert (connection.state, connection.deadline) == (ConnectionState.HEAD, 75.0)


def test_a_body_that_drips_has_five_minutes():
    connection = Connection("gateway", LIMITS, 0.0)
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    connection.received(head, 2.0)
    for second in range(20, 300, 20):
        assert connection.received(b"x", float(second)) == []
        assert connection.deadline == min(second + 30.0, 302.0)
    assert connection.received(b"x", 301.0) == [] and connection.deadline == 302.0
    actions = connection.expired(302.0, unsent=False)
    assert b"HTTP/1.1 408 " in actions[0].data and b"the body took longer than 300 s" in actions[0].data


def test_lingering_is_not_counted_while_bytes_are_unsent():
    connection = Connection("gateway", LIMITS, 0.0)
    connection.received(BAD, 1.0)
    assert connection.expired(11.0, unsent=True) == [] and connection.deadline == 21.0
    assert connection.ended(12.0) == [CloseAction.CLOSE]


def test_a_last_answer_makes_room_for_reading_on():
    connection = Connection("gateway", Limits(ahead=10), 0.0)
    connection.received(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n" + b"x" * 10, 1.0)
    assert connection.full
    connection.begin(200, "text/plain", (), 0)
    assert connection.end(2.0) == [CloseAction.HALF_CLOSE] and not connection.full
    assert connection.received(b"x" * 100, 3.0) == [] and not connection.full


def test_a_newcomer_too_many_has_a_fifth_of_a_second():
    connection = Connection("gateway", LIMITS, 5.0, Busy("full"))
    connection.received(b"GET / HTTP/1.1\r\n", 5.1)
    assert connection.deadline == pytest.approx(5.2)
    sent, refused, ending = connection.expired(5.2, unsent=False)
    assert b" 503 " in sent.data and refused.error.status == 503 and ending is CloseAction.HALF_CLOSE


def test_arrived_is_the_first_byte_of_each_request():
    connection = Connection("gateway", LIMITS, 0.0)
    connection.received(GOOD[:3], 1.0)
    (answer,) = connection.received(GOOD[3:], 2.0)
    assert answer.request.arrived == 1.0
    connection.received(GOOD, 3.0)
    connection.begin(200, "text/plain", (), 0)
    connection.end(9.0)
    (answer,) = connection.advance(9.0)
    assert answer.request.arrived == 3.0


def test_stopping_in_each_state():
    def at(data: bytes) -> Connection:
        connection = Connection("gateway", LIMITS, 0.0)
        if data:
            connection.received(data, 1.0)
        return connection

    assert at(b"").stop(2.0) == [CloseAction.CLOSE]
    assert b" 503 " in at(b"GET").stop(2.0)[0].data
    assert b" 503 " in at(POST[:-1]).stop(2.0)[0].data
    answering = at(GOOD)
    assert answering.stop(2.0) == []
    assert b"Connection: close" in answering.begin(200, "text/plain", (), 0)
    assert answering.end(3.0) == [CloseAction.HALF_CLOSE]
    streaming = at(GOOD)
    streaming.begin(200, "text/plain", (), None)
    streaming.stop(2.0)
    streaming.end(3.0)
    assert streaming.advance(3.0) == [CloseAction.CLOSE]
    lingering = at(BAD)
    lingering.stop(2.0)
    assert lingering.deadline == pytest.approx(2.2)


@pytest.mark.parametrize("known", [False, True], ids=["new", "recognized"])
def test_a_request_that_has_come_when_the_server_stops_is_refused_and_not_reset(known):
    joined = Joined()
    if known:
        joined.receive(GOOD)
        joined.sent = b""
    assert joined.connection.stop(2.0, unread=True) == []
    assert joined.connection.deadline == pytest.approx(2.2)
    joined.receive(GOOD)
    assert joined.sent.startswith(b"HTTP/1.1 503 ") and b"the server is stopping" in joined.sent
    assert joined.endings == [CloseAction.HALF_CLOSE]
    assert [(one.method, one.path) for one in joined.refused] == [("GET", "/a")]


def test_bytes_that_are_no_request_keep_a_server_from_stopping_for_a_moment_only():
    connection = Connection("gateway", LIMITS, 0.0)
    connection.stop(2.0, unread=True)
    connection.received(b"GET", 2.0)
    assert connection.deadline == pytest.approx(2.2)
    sent, _, ending = connection.expired(2.2, unsent=False)
    assert b" 503 " in sent.data and ending is CloseAction.HALF_CLOSE


def test_the_meter_says_which_line():
    meter = HeadReader(Limits(head_line=10), "status line")
    with pytest.raises(RequestError, match="the status line is longer than 10 bytes"):
        meter.take(b"HTTP/1.1 200 OK")
    meter = HeadReader(Limits(head_line=10))
    assert meter.take(b"0123456789\r") is None, "a CR may be half of the line's end"
    assert meter.take(b"\nX: 1\r\n\r\nrest") == b"rest"
    assert meter.head == MessageHead((b"0123456789", b"X: 1"))
    meter = HeadReader(Limits(head_line=10))
    meter.take(b"0123456789\r")
    with pytest.raises(RequestError, match="longer"):
        meter.take(b"x")


@given(st.binary())
def test_what_a_message_shows_is_printable_and_short(value):
    assert rules.shown(value).replace("…", "").isascii() and rules.shown(value).isprintable()
    assert len(rules.shown(value)) < 400
