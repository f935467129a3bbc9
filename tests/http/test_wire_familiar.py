"""A request that comes again in the same bytes: the same request, the same answer, and nobody parses it."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.http import cycle, response
from bankml.http.limits import Limits
from bankml.http.wire import CloseAction, Connection, ConnectionState, DispatchRequest, RequestRejected, Send

LIMITS = Limits()
GET = b"GET /a?b HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"HEAD /a HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x\r\n\r\n"
DELETE = b"DELETE /c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
EXPECTING = b"GET /d HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n"
UPGRADING = b"GET /e HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
LEAVING = b"GET /f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
OLD = b"GET /g HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"
POST = b"POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
BAD = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"
LONG = GET[:-2] + b"X: " + b"a" * 3000 + b"\r\n\r\n"
REQUESTS = (GET, HEAD, DELETE, EXPECTING, UPGRADING, LEAVING, OLD, POST, BAD, LONG, GET + GET, GET[:9], b"\r\n" + GET)
HEADS = (
    (200, "text/plain", (), 3),
    (200, "application/json; charset=utf-8", (), 0),
    (200, "text/html", (("X-Frame-Options", "DENY"),), 3),
    (404, "application/json", (), 3),
    (204, "text/plain", (), 0),
    (200, "text/event-stream", (), None),
)


class Forgetful(Connection):
    """The definition: every request is new to it."""

    def _remember(self) -> None:
        pass


def play(connection: Connection, actions: list, answer: tuple, endings: list, now: float) -> bytes:
    """What goes out while `actions` are performed and every request gets `answer`."""
    status, content_type, headers, length = answer
    sent = b""
    for action in actions:
        if isinstance(action, Send):
            sent += action.data
        elif isinstance(action, DispatchRequest):
            endings.append(action.request)
            sent += connection.begin(status, content_type, headers, length)
            for part in (b"abc",) if length is None else (b"abc"[:length],):
                sent += connection.body(part)
            sent += play(connection, connection.end(now), answer, endings, now)
            sent += play(connection, connection.advance(now), answer, endings, now)
        else:
            endings.append(
                action if isinstance(action, CloseAction) else (action.method, action.path, type(action.error))
            )
    return sent


@given(st.lists(st.tuples(st.sampled_from(REQUESTS), st.sampled_from(HEADS), st.booleans()), max_size=12))
def test_what_goes_out_is_what_a_connection_without_memory_sends(exchanges):
    known, new = Connection("gateway", LIMITS, 0.0), Forgetful("gateway", LIMITS, 0.0)
    response._date.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(response.time, "time", lambda: 1e9)
        for number, (request, answer, ends) in enumerate(exchanges):
            now = float(number)
            happened: tuple[list, list] = ([], [])
            last = ends and number == len(exchanges) - 1
            sent = [b"", b""]
            for index, connection in enumerate((known, new)):
                for actions in (connection.received(request, now), connection.ended(now) if last else []):
                    sent[index] += play(connection, actions, answer, happened[index], now)
            assert sent[0] == sent[1]
            assert happened[0] == happened[1]
            assert (known.state, known.deadline, known.full) == (new.state, new.deadline, new.full)


class Counted(h11.Connection):
    made = 0

    def __init__(self, role) -> None:
        Counted.made += 1
        super().__init__(role)


@pytest.fixture
def parsed(monkeypatch):
    """How many requests h11 has seen."""
    Counted.made = 0
    monkeypatch.setattr(cycle.h11, "Connection", Counted)
    return lambda: Counted.made


@pytest.mark.parametrize("requests", [[GET], [HEAD], [GET, HEAD, DELETE, EXPECTING]])
def test_a_request_that_was_answered_is_not_parsed_again(parsed, requests):
    connection, seen = Connection("gateway", LIMITS, 0.0), []
    for _ in range(5):
        for request in requests:
            play(connection, connection.received(request, 1.0), HEADS[0], seen, 1.0)
    assert len(seen) == 5 * len(requests)
    assert parsed() == len(requests)


@pytest.mark.parametrize("request_", [POST, LONG, GET + GET])
def test_what_has_a_body_or_did_not_come_alone_or_is_long_is_parsed_every_time(parsed, request_):
    connection, seen = Connection("gateway", LIMITS, 0.0), []
    for _ in range(3):
        play(connection, connection.received(request_, 1.0), HEADS[0], seen, 1.0)
    assert parsed() == len(seen)


def test_few_requests_are_remembered_and_the_oldest_goes(parsed):
    connection, seen = Connection("gateway", LIMITS, 0.0), []
    for number in (0, 1, 2, 3, 4, 0):
        play(connection, connection.received(GET.replace(b"/a", b"/%d" % number), 1.0), HEADS[0], seen, 1.0)
    assert parsed() == 6
    assert len(connection._cached) == 4


def test_the_time_of_a_request_is_its_own():
    connection, seen = Connection("gateway", LIMITS, 0.0), []
    for now in (1.0, 2.0):
        play(connection, connection.received(GET, now), HEADS[0], seen, now)
    assert [request.arrived for request in seen] == [1.0, 2.0]


def test_a_server_that_stops_while_it_answers_says_that_it_closes():
    connection, seen = Connection("gateway", LIMITS, 0.0), []
    play(connection, connection.received(GET, 1.0), HEADS[0], seen, 1.0)
    connection.received(GET, 2.0)
    assert connection.stop(2.0) == []
    assert b"\r\nConnection: close\r\n" in connection.begin(200, "text/plain", (), 1)
    connection.body(b"x")
    assert connection.end(2.0) == [CloseAction.HALF_CLOSE]
    assert connection.state is ConnectionState.LINGER


@given(st.text(st.characters(max_codepoint=255), max_size=12), st.integers(0, 1 << 40), st.sampled_from((200, 404)))
def test_a_plain_head_is_h11s_or_left_to_h11(content_type, length, status):
    plain = response.plain_head(status, content_type, (), length)
    if plain is None:
        return
    http = h11.Connection(h11.SERVER)
    http.receive_data(GET)
    assert [type(http.next_event()) for _ in range(2)] == [h11.Request, h11.EndOfMessage]
    assert plain == http.send(response.response(status, content_type, (), length, closing=False))


@pytest.mark.parametrize("value", ["a\r\nb: c", " a", "a ", "", "é", "a\tb"])
def test_a_head_that_h11_might_refuse_is_not_plain(value):
    assert response.plain_head(200, value, (), 1) is None


def test_a_refused_request_is_refused_again():
    connection = Connection("gateway", LIMITS, 0.0)
    assert any(isinstance(action, RequestRejected) for action in connection.received(BAD, 1.0))
    assert connection._cached == {}
