"""One client's connection as a sans-IO state machine: bytes and times in, actions out. No sockets, clock or threads.

    state     what is awaited                     deadline             when it passes  the client ends its side
    IDLE      the first byte of a head            head, idle later     close           close
    HEAD      the rest of a head                  head                 408             400
    BODY      the announced bytes of a body       body_pause, renewed  408             400
                                                  within body_time
    ANSWER    the application's response          -                    -               the response is still sent
    ANSWERED  `advance`, the next request         -                    -               pipelined requests are served
    LINGER    the client's end; bytes discarded   linger               abort           close
    CLOSED    -                                   -                    -               -

    IDLE -> HEAD -> BODY -> ANSWER -> ANSWERED -> IDLE (kept alive)
    IDLE, HEAD, BODY -> LINGER (refused), ANSWER -> LINGER (last answer), LINGER -> CLOSED

Every connection that the server closes passes through LINGER: our side is closed first and what the client still sends
is read and discarded, because closing a socket with unread bytes makes TCP send a reset, which discards the response
before the client has read it. An error response is sent at once, before the body that is discarded. One request is
processed at a time; pipelined bytes are buffered unparsed.

A polling client sends the same bytes again and again. A head that came alone, passed every rule and left the connection
open is cached, with a few others: the same bytes are the same request, and neither the rules nor h11 run again.

A client beyond the connection limit is an ordinary connection that gets a 503 as soon as its head is complete, or after
`drain` seconds.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Literal

import h11

from bankml.errors import Busy, MethodNotAllowed, RequestError, RequestTimeout, Unauthorized
from bankml.http import rules
from bankml.http.api_keys import ApiKeys
from bankml.http.cors import AllowedOrigins
from bankml.http.cycle import CachedCycle, Cycle, ParsedCycle
from bankml.http.exchange import JSON, Headers, Request
from bankml.http.head import HeadReader, MessageHead
from bankml.http.limits import Limits
from bankml.http.response import response

Address = Literal["gateway", "engine"]


class ConnectionState(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    ANSWERED = auto()
    LINGER = auto()
    CLOSED = auto()


@dataclass(frozen=True)
class Send:
    """Send these bytes to the client."""

    data: bytes


@dataclass(frozen=True)
class DispatchRequest:
    """A complete request: respond through `begin`, `body` and `end`."""

    request: Request


@dataclass(frozen=True)
class RequestRejected:
    """An error response was sent (by the Send before); for the log. `method` and `path` may be empty if unreadable."""

    error: RequestError
    method: str
    path: str
    size: int
    arrived: float


class CloseAction(Enum):
    HALF_CLOSE = auto()
    """Close our sending side after what was sent."""
    CLOSE = auto()
    """Close the connection after what was sent."""
    ABORT = auto()
    """Reset the connection now, discarding what is unsent."""


@dataclass(frozen=True)
class CachedRequest:
    """A request without a body, and its head."""

    head: MessageHead
    request: Request


Action = Send | DispatchRequest | RequestRejected | CloseAction
_DEADLINES = {  # which of the limits is each state's deadline
    ConnectionState.IDLE: "idle",
    ConnectionState.HEAD: "head",
    ConnectionState.BODY: "body_pause",
    ConnectionState.LINGER: "linger",
}
_READING = (ConnectionState.IDLE, ConnectionState.HEAD, ConnectionState.BODY)
_MAX_CACHED_HEAD = 2048  # bytes of a head that is cached; browsers' have about a thousand
_CACHED_HEADS = 4  # heads of one connection
_STOPPING = "the server is stopping"


class Connection:
    """The server's side of one connection, accepted at `now` (time.monotonic, as every time here).

    `busy` is the error for a client beyond the connection limit. After each call `deadline` is when to call `expired`,
    None for never. `idle_since` is when the connection last became IDLE.
    """

    def __init__(
        self,
        address: Address,
        limits: Limits,
        now: float,
        busy: Busy | None = None,
        api_keys: ApiKeys | None = None,
        origins: AllowedOrigins | None = None,
    ) -> None:
        self.address: Address = address
        self.state = ConnectionState.IDLE
        self.deadline: float | None = now + (limits.drain if busy else limits.head)
        self.client_ended = False
        self.idle_since = now
        self._limits = limits
        self._busy = busy
        self._api_keys = api_keys
        self._origins = origins or AllowedOrigins()
        self._stopping = False
        self._first = True
        self._kept = bytearray()
        self._kept_since = now
        self._arrived = now
        self._body_due = now
        self._cycle: Cycle  # of the current request
        self._cached: dict[bytes, CachedRequest] = {}
        self._begin_message()

    def _begin_message(self) -> None:
        self._head_reader = HeadReader(self._limits)
        self._head = MessageHead(())
        self._parsed: ParsedCycle | None = None
        self._body = bytearray()
        self._cacheable: dict[bytes, CachedRequest] = {}

    # ---- what the client does

    def received(self, data: bytes, now: float) -> list[Action]:
        if self.state in (ConnectionState.LINGER, ConnectionState.CLOSED):
            return []
        if self.state not in _READING:
            self._keep(data, now)
            return []
        if self.state is ConnectionState.IDLE and not self._busy and (cached := self._cached.get(data)):
            return [self._dispatch_cached(cached, now)]
        try:
            return self._read(data, now, now)
        except RequestError as error:
            return self._refuse(error, now)

    @property
    def full(self) -> bool:
        """Whether the buffer for pipelined bytes is full: read no more until the next `advance`."""
        return len(self._kept) >= self._limits.ahead

    @property
    def pipelined(self) -> bool:
        """Whether bytes of the next request have been received."""
        return bool(self._kept)

    def ended(self, now: float) -> list[Action]:
        """The client has closed its sending side; it may still read."""
        self.client_ended = True
        if self.state in (ConnectionState.IDLE, ConnectionState.LINGER):
            return self._close()
        if self.state is ConnectionState.HEAD:
            return self._refuse(RequestError("the connection ended within the request's head"), now)
        if self.state is ConnectionState.BODY:
            came, announced = len(self._body), rules.announced(self._head)
            return self._refuse(RequestError(f"the body ended after {came} of {announced} bytes"), now)
        return []

    # ---- what time does

    def expired(self, now: float, unsent: bool) -> list[Action]:
        """The deadline has passed. `unsent`: bytes are still being sent, so the client is not late yet."""
        if self.state is ConnectionState.LINGER:
            if unsent:
                self._enter(ConnectionState.LINGER, now)
                return []
            self._enter(ConnectionState.CLOSED, now)
            return [CloseAction.ABORT]
        if self._busy and self.state in _READING:
            return self._refuse(self._busy, now)
        if self.state is ConnectionState.IDLE:
            return self._close()
        if self.state is ConnectionState.HEAD:
            return self._refuse(RequestTimeout(f"the request's head took longer than {self._limits.head:g} s"), now)
        if self.state is ConnectionState.BODY:
            what = f"no byte of the body was received for {self._limits.body_pause:g} s"
            if now >= self._body_due:
                what = f"the body took longer than {self._limits.body_time:g} s"
            return self._refuse(RequestTimeout(what), now)
        return []

    def stop(self, now: float, unread: bool = False) -> list[Action]:
        """The server stops: an idle connection is closed, an incomplete request refused, a response is the last.

        `unread`: bytes were received that `received` has not been given yet. Closing now would reset the connection,
        and the client would lose what it has not read of its last response.
        """
        self._stopping = True
        if self.state is ConnectionState.IDLE and unread:
            self._busy, self.deadline = Busy(_STOPPING), now + self._limits.drain
            return []
        if self.state is ConnectionState.IDLE:
            return self._close()
        if self.state in _READING:
            return self._refuse(Busy(_STOPPING), now)
        if self.state is ConnectionState.LINGER:
            self._enter(ConnectionState.LINGER, now)
        if self.state is ConnectionState.ANSWERED:
            return self.advance(now)
        return []

    # ---- what the application does

    def begin(self, status: int, content_type: str, headers: Headers, length: int | None) -> bytes:
        """The response's head. `length` is the body's bytes, None where it is streamed."""
        closing = self._stopping or (self.client_ended and not self._kept)
        headers = (*headers, *self._origins.headers(self._head))
        return self._cycle.begin(status, content_type, headers, length, closing)

    def body(self, data: bytes) -> bytes:
        """A part of the response's body, framed. A HEAD gets none."""
        return b"" if self._head.request_line[0] == b"HEAD" or not data else self._cycle.body(data)

    def end(self, now: float) -> list[Action]:
        """The response is complete."""
        sent = self._cycle.end()
        actions: list[Action] = [Send(sent)] if sent else []
        if self._cycle.closes:
            self._enter(ConnectionState.LINGER, now)
            return [*actions, *self._half_close()]
        self._cache_head()
        self._enter(ConnectionState.ANSWERED, now)
        return actions

    def advance(self, now: float) -> list[Action]:
        """After `end`: processes the next request, of which bytes may be buffered already."""
        if self.state is not ConnectionState.ANSWERED:
            return []
        self._first = False
        self._begin_message()
        kept, self._kept = bytes(self._kept), bytearray()
        self._enter(ConnectionState.IDLE, now)
        actions: list[Action] = []
        if kept:
            try:
                actions = self._read(kept, now, self._kept_since)
            except RequestError as error:
                actions = self._refuse(error, now)
        if self.client_ended and self.state in _READING:
            actions += self.ended(now)
        if self._stopping and self.state in _READING:
            actions += self.stop(now)
        return actions

    # ---- reading

    def _cache_head(self) -> None:
        self._cached |= self._cacheable
        if len(self._cached) > _CACHED_HEADS:
            del self._cached[next(iter(self._cached))]

    def _dispatch_cached(self, cached: CachedRequest, now: float) -> DispatchRequest:
        self._head, self._cycle, self._arrived = cached.head, CachedCycle(cached.head), now
        self._enter(ConnectionState.ANSWER, now)
        return DispatchRequest(replace(cached.request, arrived=now))

    def _read(self, data: bytes, now: float, arrived: float) -> list[Action]:
        if self._parsed is not None:
            return self._read_body(self._parsed, data, now)
        alone = self.state is ConnectionState.IDLE and len(data) <= _MAX_CACHED_HEAD
        if self.state is ConnectionState.IDLE:
            self._arrived = arrived
            self._enter(ConnectionState.HEAD, now)
        rest = self._head_reader.take(data)
        if rest is None:
            return []
        self._head = self._head_reader.head
        if self._busy:
            raise self._busy
        rules.check(rules.BEFORE_PARSING, self._head, self._limits)
        parsed = ParsedCycle(self._head)
        if self._origins.preflights(self._head):  # which has no key
            rules.check(rules.OF_PREFLIGHTS, self._head, self._limits)
        else:
            rules.check(rules.AFTER_PARSING, self._head, self._limits)
            if self._api_keys is not None:
                self._api_keys.check(self._head)
        self._parsed, self._body_due = parsed, now + self._limits.body_time
        actions = self._read_body(parsed, rest, now)
        if alone and not rest and actions and isinstance(answer := actions[0], DispatchRequest):
            self._cacheable = {data: CachedRequest(self._head, answer.request)}
        return actions or ([Send(go_on)] if (go_on := parsed.go_on()) else [])

    def _read_body(self, parsed: ParsedCycle, data: bytes, now: float) -> list[Action]:
        self._enter(ConnectionState.BODY, now)
        missing = rules.announced(self._head) - len(self._body)
        self._body += parsed.receive(data[:missing])  # never more, so that every head passes the reader with the limits
        if not parsed.complete:
            return []
        self._cycle = parsed
        self._keep(data[missing:], now)
        return [self._answer(now)]

    def _answer(self, now: float) -> DispatchRequest:
        self._enter(ConnectionState.ANSWER, now)
        method = self._head.request_line[0].decode("ascii")
        path, query = rules.split_target(self._head)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._head.fields}
        body, self._body = bytes(self._body), bytearray()
        return DispatchRequest(Request(method, path, query, headers, body, self.address, self._arrived))

    def _keep(self, data: bytes, now: float) -> None:
        if not self._kept:
            self._kept_since = now
        self._kept += data

    # ---- ending

    def _refuse(self, error: RequestError, now: float) -> list[Action]:
        if self.state is not ConnectionState.BODY:
            error = self._host_first(error)
        method, target, _ = self._head.request_line
        path = rules.split_target(self._head)[0] if target else ""
        body = rules.error_body(error, path, self.address)
        extra: Headers = (("Allow", rules.allowed_methods()),) if isinstance(error, MethodNotAllowed) else ()
        if isinstance(error, Unauthorized):
            extra = (("WWW-Authenticate", "Bearer"),)
        extra = (*extra, *self._origins.headers(self._head))
        data = h11.Connection(h11.SERVER).send(response(error.status, JSON, extra, len(body), closing=True))
        if method != b"HEAD":
            data += body
        self._enter(ConnectionState.LINGER, now)
        logged = RequestRejected(error, method.decode("latin-1"), path, len(body), self._arrived)
        return [Send(data), logged, *self._half_close()]

    def _host_first(self, error: RequestError) -> RequestError:
        """If the lines read so far name a foreign host, that is the error reported, whatever else is wrong."""
        self._head = self._head_reader.head
        if error is self._busy:
            return error
        try:
            rules.foreign_host(self._head)
        except RequestError as foreign:
            return foreign
        return error

    def _half_close(self) -> list[Action]:
        return self._close() if self.client_ended else [CloseAction.HALF_CLOSE]

    def _close(self) -> list[Action]:
        self.state, self.deadline = ConnectionState.CLOSED, None
        return [CloseAction.CLOSE]

    def _enter(self, state: ConnectionState, now: float) -> None:
        self.state = state
        if state is ConnectionState.IDLE:
            self.idle_since = now
        if state is ConnectionState.LINGER:
            self._kept.clear()  # it will not be parsed, and while it is full nothing is read
        if state is ConnectionState.HEAD and self._first:
            return  # the deadline of a first head runs from the connection's acceptance
        if self._busy and state in _READING:
            return
        name = "drain" if self._stopping and state is ConnectionState.LINGER else _DEADLINES.get(state)
        self.deadline = None if name is None else now + getattr(self._limits, name)
        if state is ConnectionState.BODY and self.deadline is not None:
            self.deadline = min(self.deadline, self._body_due)
