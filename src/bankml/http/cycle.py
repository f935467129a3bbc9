"""One request and its response as HTTP/1.1: through h11, or from a cached head without h11."""

from typing import Protocol

import h11

from bankml.errors import RequestError
from bankml.http.exchange import Headers
from bankml.http.head import MessageHead
from bankml.http.response import plain_head, response


class Cycle(Protocol):
    """A complete request has been read; encodes its response, part by part, as bytes."""

    def begin(self, status: int, content_type: str, headers: Headers, length: int | None, closing: bool) -> bytes:
        """The head. `length` is the body's bytes, None where it is streamed; `closing`: it is the last."""

    def body(self, data: bytes) -> bytes:
        """A part of the body, framed. `data` is not empty."""

    def end(self) -> bytes:
        """The bytes after the last part."""

    @property
    def closes(self) -> bool:
        """After `end`: whether the connection closes after this response."""


class ParsedCycle:
    """A request parsed by h11, from a head within the limits. Raises RequestError for what is not HTTP/1.1."""

    def __init__(self, head: MessageHead) -> None:
        self._h11 = h11.Connection(h11.SERVER)
        self._chunked = False
        self.complete = False
        self._h11.receive_data(head.bytes)
        try:
            event = self._h11.next_event()
        except h11.RemoteProtocolError as error:
            what = str(error).partition(" bytearray(")[0].rstrip(":")  # h11 quotes the line, which may be anything
            raise RequestError(f"this is not HTTP/1.1: {what[:200]}") from None
        if not isinstance(event, h11.Request):
            raise RequestError("this is not HTTP/1.1: a request was expected")

    def receive(self, data: bytes) -> bytes:
        """The part of the body in `data`, which may be empty. `complete` is set with the last one."""
        if data:  # h11 takes an empty input for the end of the connection
            self._h11.receive_data(data)
        parts = []
        while isinstance(event := self._h11.next_event(), h11.Data):
            parts.append(event.data)
        self.complete = isinstance(event, h11.EndOfMessage)
        return b"".join(parts)

    def go_on(self) -> bytes:
        """`100 Continue` for a client that waits for it before it sends its body; empty for others."""
        if not self._h11.they_are_waiting_for_100_continue:
            return b""
        return self._h11.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")) or b""

    def begin(self, status: int, content_type: str, headers: Headers, length: int | None, closing: bool) -> bytes:
        head = self._h11.send(response(status, content_type, headers, length, closing)) or b""
        self._chunked = length is None and b"\r\ntransfer-encoding: chunked\r\n" in head.lower()
        return head

    def body(self, data: bytes) -> bytes:
        if self._chunked:  # the same bytes as h11's, without its cost for every streamed event
            return b"%x\r\n%b\r\n" % (len(data), data)
        return self._h11.send(h11.Data(data=data)) or b""

    def end(self) -> bytes:
        return self._h11.send(h11.EndOfMessage()) or b""

    @property
    def closes(self) -> bool:
        return self._h11.our_state is h11.MUST_CLOSE


class CachedCycle:
    """A request without a body whose bytes are those of an earlier one that left its connection open. h11 parses it
    again only where the response's head depends on it."""

    def __init__(self, head: MessageHead) -> None:
        self._head = head
        self._parsed: ParsedCycle | None = None

    def begin(self, status: int, content_type: str, headers: Headers, length: int | None, closing: bool) -> bytes:
        if not closing and (plain := plain_head(status, content_type, headers, length)):
            return plain
        self._parsed = ParsedCycle(self._head)
        self._parsed.receive(b"")
        return self._parsed.begin(status, content_type, headers, length, closing)

    def body(self, data: bytes) -> bytes:
        return data if self._parsed is None else self._parsed.body(data)

    def end(self) -> bytes:
        return b"" if self._parsed is None else self._parsed.end()

    @property
    def closes(self) -> bool:
        return self._parsed is not None and self._parsed.closes
