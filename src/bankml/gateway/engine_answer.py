"""One answer of the engine as its bytes come in: its head under the wire's limits, its body without the framing.

h11 reads the head, behind the meter that bounds it. The body's framing is read here, because a size has to be judged
when it is announced, before a byte of it is kept, and h11 does not tell a chunk's size.

    framing        the body ends                      an end of the connection before that
    Sized          after Content-Length bytes         the answer is broken off
    Chunked        after the chunk of size 0          the answer is broken off
    UntilClosed    with the connection                -
"""

import re
from dataclasses import dataclass
from typing import Protocol

import h11

from bankml.errors import EngineFailed, RequestError
from bankml.gateway.head import HeadMeter
from bankml.gateway.limits import Limits

_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[\t\x20-\x7e]*)?")
_BODILESS = (204, 304)


def broken(why: str) -> EngineFailed:
    return EngineFailed(f"llama-server's answer cannot be read: {why}")


@dataclass(frozen=True)
class EngineHead:
    """`media_type` is lower-case and without parameters; `content_type` is the header as sent."""

    status: int
    content_type: str
    keeps_open: bool

    @property
    def media_type(self) -> str:
        return self.content_type.partition(";")[0].strip().lower()


class Framing(Protocol):
    complete: bool

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """(bytes of the body, what follows it)."""


class AnswerReader:
    """`request` is the h11 connection that has sent the request. Raises EngineFailed at the first wrong byte."""

    def __init__(self, request: h11.Connection, limits: Limits) -> None:
        self._h11 = request
        self._limits = limits
        self._meter = HeadMeter(limits, first_line="status line")
        self._framing: Framing | None = None
        self.head: EngineHead | None = None
        self.begun = False

    @property
    def complete(self) -> bool:
        return self._framing is not None and self._framing.complete

    def take(self, data: bytes) -> bytes:
        """Takes what came; gives what of it is the body's."""
        self.begun = True
        if self._framing is None:
            try:
                rest = self._meter.take(data)
            except RequestError as error:
                raise broken(error.message) from None
            if rest is None:
                return b""
            self._framing = self._begin()
            data = rest
        body, rest = self._framing.take(data)
        if rest:
            raise broken("bytes follow its end")
        return body

    def ended(self) -> None:
        """The engine sends no more."""
        if isinstance(self._framing, UntilClosed):
            self._framing.complete = True
        elif not self.complete:
            raise broken("the connection ended within it" if self.begun else "the connection ended before it")

    def _begin(self) -> Framing:
        self._h11.receive_data(self._meter.head.bytes)
        try:
            response = self._h11.next_event()
        except h11.RemoteProtocolError as error:
            raise broken(str(error)[:200]) from None
        if not isinstance(response, h11.Response):
            raise broken("it begins with an informational answer that nobody asked for")
        values: dict[bytes, list[bytes]] = {}
        for name, value in response.headers:
            values.setdefault(name, []).append(value)
        framing = self._framing_of(response.status_code, values)
        closing = b"close" in b",".join(values.get(b"connection", [])).lower().replace(b" ", b"").split(b",")
        keeps_open = response.http_version == b"1.1" and not closing and not isinstance(framing, UntilClosed)
        content_type = b"".join(values.get(b"content-type", [])[:1]).decode("ascii", "replace")
        if not content_type.isascii():
            raise broken("its Content-Type is not ASCII")
        self.head = EngineHead(response.status_code, content_type, keeps_open)
        return framing

    def _framing_of(self, status: int, values: dict[bytes, list[bytes]]) -> Framing:
        most = self._limits.engine_body
        if status in _BODILESS:
            return Sized(0)
        if b"transfer-encoding" in values:
            if b"content-length" in values:
                raise broken("it has both Transfer-Encoding and Content-Length")
            return Chunked(self._limits)
        if b"content-length" not in values:
            return UntilClosed()
        length = int(values[b"content-length"][0])
        if length > most:
            raise broken(f"its Content-Length is {length}, and {most} bytes are taken at most")
        return Sized(length)


class Sized:
    def __init__(self, length: int) -> None:
        self._missing = length
        self.complete = not length

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        body, rest = data[: self._missing], data[self._missing :]
        self._missing -= len(body)
        self.complete = not self._missing
        return body, rest


class UntilClosed:
    complete = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        return data, b""


class Chunked:
    """RFC 9112 7.1: `SIZE[;extension] CRLF data CRLF` again and again, `0 CRLF`, trailer lines, an empty line."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._line = bytearray()
        self._missing = 0  # bytes of the chunk that is being read
        self._end_due = False  # the CRLF after a chunk's data
        self._trailers: int | None = None  # lines after the last chunk
        self.complete = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        body: list[bytes] = []
        at = 0
        while at < len(data) and not self.complete:
            if self._missing:
                part = data[at : at + self._missing]
                body.append(part)
                self._missing -= len(part)
                self._end_due = not self._missing
            else:
                end = data.find(b"\n", at)
                part = data[at : end + 1 if end >= 0 else len(data)]
                self._add_to_line(part, whole=end >= 0)
            at += len(part)
        return b"".join(body), data[at:]

    def _add_to_line(self, part: bytes, whole: bool) -> None:
        if len(self._line) + len(part) > self._limits.engine_line:
            raise broken(f"a line between its chunks is longer than {self._limits.engine_line} bytes")
        self._line += part
        if not whole:
            return
        line = bytes(self._line)
        self._line.clear()
        if not line.endswith(b"\r\n"):
            raise broken("a line between its chunks ends in LF alone")
        self._end_line(line[:-2])

    def _end_line(self, line: bytes) -> None:
        if self._end_due:
            if line:
                raise broken("a chunk is longer than announced")
            self._end_due = False
        elif self._trailers is not None:
            self._trailers += 1
            if self._trailers > self._limits.header_lines:
                raise broken(f"more than {self._limits.header_lines} lines follow its last chunk")
            self.complete = not line
        else:
            self._begin_chunk(line)

    def _begin_chunk(self, line: bytes) -> None:
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise broken("the size of a chunk is no hexadecimal number")
        self._missing = int(match[1], 16)
        if self._missing > self._limits.engine_body:
            raise broken(f"a chunk of {self._missing} bytes: {self._limits.engine_body} are taken at most")
        if not self._missing:
            self._trailers = 0
