"""One request and its answer as HTTP/1.1: as h11 sees them, and as they were seen before."""

from typing import Protocol

import h11

from bankml.errors import RequestError
from bankml.http.exchange import Headers
from bankml.http.head import MessageHead
from bankml.http.response import plain_head, response


class Cycle(Protocol):
    """A whole request has come. What its answer is, part by part, in bytes."""

    def begin(self, status: int, content_type: str, headers: Headers, length: int | None, closing: bool) -> bytes:
        """The head. `length` is the body's bytes, None where it is streamed; `closing`: it is the connection's last."""

    def body(self, data: bytes) -> bytes:
        """A part of the body, framed. `data` is not empty."""

    def end(self) -> bytes:
        """What follows the last part."""

    @property
    def closes(self) -> bool:
        """After `end`: whether the connection ends with this answer."""


class ParsedCycle:
    """A request as h11 reads it, from a head that has passed the meter. Raises RequestError for what is no HTTP."""

    def __init__(self, head: MessageHead) -> None:
        self._h11 = h11.Connection(h11.SERVER)
        self._chunked = False
        self.complete = False
        self._h11.receive_data(head.bytes)
        try:
            event = self._h11.next_event()
        except h11.RemoteProtocolError as error:
            what = str(error).partition(" bytearray(")[0].rstrip(":")  # h11 shows the line itself; it may be anything
            raise RequestError(f"this is not HTTP/1.1: {what[:200]}") from None
        if not isinstance(event, h11.Request):
            raise RequestError("this is not HTTP/1.1: a request was expected")

    def receive(self, data: bytes) -> bytes:
        """The body's part in `data`, which may be empty. `complete` is whether it was the last."""
        if data:  # nothing would mean to h11 that the client has ended
            self._h11.receive_data(data)
        parts = []
        while isinstance(event := self._h11.next_event(), h11.Data):
            parts.append(event.data)
        self.complete = isinstance(event, h11.EndOfMessage)
        return b"".join(parts)

    def go_on(self) -> bytes:
        """The 100 for a client that waits for one before it sends its body; nothing for others."""
        if not self._h11.they_are_waiting_for_100_continue:
            return b""
        return self._h11.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")) or b""

    def begin(self, status: int, content_type: str, headers: Headers, length: int | None, closing: bool) -> bytes:
        head = self._h11.send(response(status, content_type, headers, length, closing)) or b""
        self._chunked = length is None and b"\r\ntransfer-encoding: chunked\r\n" in head.lower()
        return head

    def body(self, data: bytes) -> bytes:
        if self._chunked:  # what h11 makes of it, too; a streamed event waits for every µs here
            return b"%x\r\n%b\r\n" % (len(data), data)
        return self._h11.send(h11.Data(data=data)) or b""

    def end(self) -> bytes:
        return self._h11.send(h11.EndOfMessage()) or b""

    @property
    def closes(self) -> bool:
        return self._h11.our_state is h11.MUST_CLOSE


class CachedCycle:
    """A request without a body that was answered before, in the same bytes, and left its connection open. h11 sees it
    again only where it has something to decide of the answer."""

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
