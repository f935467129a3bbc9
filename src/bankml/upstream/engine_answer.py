"""Parses one response of the engine: its head within the limits, its body without the framing. Sans-IO.

The reader and the rules of a request's head are used for this one too. h11 is not: it does not expose a chunk's size,
which has to be checked when it is announced, before a byte of it is buffered; and it took 55 µs of each exchange.

    framing        the body ends                      the connection closes before that
    Sized          after Content-Length bytes         the response is incomplete
    Chunked        after the chunk of size 0          the response is incomplete
    UntilClosed    with the connection                -
"""

import re
from dataclasses import dataclass
from typing import Protocol

from bankml.errors import EngineFailed, RequestError
from bankml.http import rules
from bankml.http.head import HeadReader, MessageHead
from bankml.http.limits import Limits

_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[\t\x20-\x7e]*)?")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?")
_CHUNK_START = re.compile(rb"([0-9A-Fa-f]{1,5})\r\n")
_BODILESS = (204, 304)


def broken(why: str) -> EngineFailed:
    return EngineFailed(f"llama-server's response cannot be read: {why}")


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
    """Parses the response to a GET or a POST. Raises EngineFailed at the first wrong byte."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._head_reader = HeadReader(limits, first_line="status line")
        self._framing: Framing | None = None
        self.head: EngineHead | None = None
        self.begun = False

    @property
    def complete(self) -> bool:
        return self._framing is not None and self._framing.complete

    def take(self, data: bytes) -> bytes:
        """Parses `data`; returns the body's part of it."""
        self.begun = True
        if self._framing is None:
            try:
                rest = self._head_reader.take(data)
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
        """The engine has closed its sending side."""
        if isinstance(self._framing, UntilClosed):
            self._framing.complete = True
        elif not self.complete:
            raise broken("the connection ended within it" if self.begun else "the connection ended before it")

    def _begin(self) -> Framing:
        head = self._head_reader.head
        status_line = _STATUS_LINE.fullmatch(head.lines[0])
        if status_line is None:
            raise broken("its first line is not a status line of HTTP/1.1 or HTTP/1.0")
        try:
            rules.characters(head, self._limits)
            rules.content_length(head, self._limits)
        except RequestError as error:
            raise broken(error.message) from None
        status = int(status_line[2])
        if status < 200:
            raise broken("it begins with an unexpected informational response")
        framing = self._framing_of(status, head)
        options = [option.strip() for option in b",".join(head.values(b"connection")).lower().split(b",")]
        keeps_open = status_line[1] == b"1" and b"close" not in options and not isinstance(framing, UntilClosed)
        content_type = b"".join(head.values(b"content-type")[:1])
        if not content_type.isascii():
            raise broken("its Content-Type is not ASCII")
        self.head = EngineHead(status, content_type.decode("ascii"), keeps_open)
        return framing

    def _framing_of(self, status: int, head: MessageHead) -> Framing:
        lengths, codings = head.values(b"content-length"), head.values(b"transfer-encoding")
        if status in _BODILESS:
            return Sized(0)
        if codings:
            if lengths or [coding.lower() for coding in codings] != [b"chunked"]:
                raise broken("its Transfer-Encoding is not chunked, or Content-Length is there too")
            return Chunked(self._limits)
        if not lengths:
            return UntilClosed()
        length, most = int(lengths[0]), self._limits.engine_body
        if length > most:
            raise broken(f"its Content-Length is {length}, more than the limit of {most} bytes")
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
        if self._missing == 0 and not (self._line or self._end_due or self._trailers is not None):
            match = _CHUNK_START.match(data)  # most often data is one complete chunk
            if match and 0 < (size := int(match[1], 16)) == len(data) - match.end() - 2 and data.endswith(b"\r\n"):
                return data[match.end() : match.end() + size], b""
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
                self._add_to_line(part, complete=end >= 0)
            at += len(part)
        return b"".join(body), data[at:]

    def _add_to_line(self, part: bytes, complete: bool) -> None:
        if len(self._line) + len(part) > self._limits.engine_line:
            raise broken(f"a line between its chunks is longer than {self._limits.engine_line} bytes")
        self._line += part
        if not complete:
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
