"""Reads the head of an HTTP message line by line within the limits, before any parser.

h11 buffers a complete head and accepts lone LF line ends; the limits here are a line's length and the number of lines,
so they are checked before h11. Nothing of a line is buffered beyond its limit. Requests and responses use the same
reader: a request's head begins with the request line, a response's with the status line.
"""

from dataclasses import dataclass
from functools import cached_property

from bankml.errors import RequestError
from bankml.http.limits import Limits


@dataclass(frozen=True)
class MessageHead:
    """The lines of a head, without line ends and without the empty one; possibly malformed or incomplete."""

    lines: tuple[bytes, ...]

    @cached_property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        """(lower-case name, value without the white space around it) of each header line that has a colon."""
        pairs = (line.partition(b":") for line in self.lines[1:] if b":" in line)
        return tuple((name.lower(), value.strip(b" \t")) for name, _, value in pairs)

    def values(self, name: bytes) -> list[bytes]:
        return [value for found, value in self.fields if found == name]

    @cached_property
    def request_line(self) -> tuple[bytes, bytes, bytes]:
        """(method, target, version); empty where the line has fewer parts."""
        parts = self.lines[0].split(b" ", 2) if self.lines else []
        method, target, version = (*parts, b"", b"", b"")[:3]
        return method, target, version

    @property
    def bytes(self) -> bytes:
        return b"\r\n".join(self.lines) + b"\r\n\r\n"


class HeadReader:
    """Reads one head. `first_line` is the name of its first line in error messages."""

    def __init__(self, limits: Limits, first_line: str = "request line") -> None:
        self._limits = limits
        self._first_line = first_line
        self._partial = bytearray()
        self._lines: list[bytes] = []
        self._blank_seen = False

    @property
    def begun(self) -> bool:
        return bool(self._partial or self._lines or self._blank_seen)

    @property
    def head(self) -> MessageHead:
        """The complete lines read so far."""
        return MessageHead(tuple(self._lines))

    def take(self, data: bytes) -> bytes | None:
        """Reads `data`. None while the head is incomplete, else the bytes after it.

        Raises RequestError at the first byte beyond a limit, and for a line that ends in LF alone.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            line = bytes(self._partial) + data[start:end]
            self._partial.clear()
            start = end + 1
            if not line.endswith(b"\r"):
                raise RequestError(f"{self._name()} ends in LF alone: end it with CR LF")
            line = line[:-1]
            self._check_length(len(line))
            if line:
                self._add(line)
            elif self._lines:
                return data[start:]
            elif self._blank_seen:
                raise RequestError(f"the {self._first_line} is missing: the message begins with empty lines")
            else:
                self._blank_seen = True  # RFC 9112 2.2: at least one empty line before the request line is ignored
        self._buffer(data[start:])
        return None

    def _buffer(self, data: bytes) -> None:
        # A CR at the end may be half of the line's end, so it is not yet a byte of the line.
        self._check_length(len(self._partial) + len(data) - (data or self._partial).endswith(b"\r"))
        self._partial += data

    def _add(self, line: bytes) -> None:
        if len(self._lines) > self._limits.header_lines:
            raise RequestError(f"the head has more than {self._limits.header_lines} header lines")
        self._lines.append(line)

    def _check_length(self, length: int) -> None:
        if length > self._limits.head_line:
            raise RequestError(f"{self._name()} is longer than {self._limits.head_line} bytes")

    def _name(self) -> str:
        return f"header line {len(self._lines)}" if self._lines else f"the {self._first_line}"
