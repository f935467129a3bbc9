"""The access log: one line per request on stderr, with time, address, request, status and duration, and no content.

    2026-03-01T12:00:00.000Z gateway POST /v1/chat/completions 200 5120B 812.4ms ttft=95.1ms prompt=31 cached=0
    completion=64 stop
    2026-03-01T12:00:01.500Z gateway GET /x 403 130B 0.2ms refused: permission_error

`B` counts the body's bytes, before any chunking. An error's message is not logged, because it may quote the request.
"""

import re
import select
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TextIO

from bankml.http.exchange import RequestOutcome

_PATH_SHOWN = 200
_VISIBLE = re.compile("[!-~]*")


@dataclass(frozen=True)
class AccessLogEntry:
    """One request. `size` is its response body's bytes, `seconds` runs from the request's first byte to the response's
    last, `first` to the first part of a streamed one."""

    address: str
    method: str
    path: str
    size: int
    seconds: float
    line: RequestOutcome
    first: float | None = None


class RequestLog:
    """Writes entries to `stream`, each in one call, from any thread.

    Writing never blocks: a line for which a pipe has no room is dropped, and the next line that is written reports how
    many were. A log that cannot be written does not affect responses.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._left_out = 0
        self._room = select.poll()
        try:
            self._room.register(stream, select.POLLOUT)
            self._may_block = True
        except (OSError, ValueError):  # not a file descriptor
            self._may_block = False

    def write(self, entry: AccessLogEntry) -> None:
        self.say(format_entry(entry, time.time()))

    def say(self, text: str) -> None:
        """Writes a line shorter than a page, which a pipe that is writable has room for."""
        with self._lock:
            if self._may_block and not self._room.poll(0):
                self._left_out += 1
                return
            if self._left_out:
                text = f"{self._left_out} log lines were dropped here, because the log was not read\n{text}"
                self._left_out = 0
            try:
                self._stream.write(text + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                pass


def format_entry(entry: AccessLogEntry, now: float) -> str:
    """`entry` as its line, without the line end; `now` in seconds since the epoch."""
    second, part = divmod(int(now * 1000), 1000)
    line = entry.line
    words = [
        f"{_moment(second)}.{part:03d}Z",
        entry.address,
        escaped(entry.method, 16) or "-",
        escaped(entry.path, _PATH_SHOWN) or "-",
        str(line.status),
        f"{entry.size}B",
        f"{entry.seconds * 1000:.1f}ms",
    ]
    if entry.first is not None:
        words.append(f"ttft={entry.first * 1000:.1f}ms")
    counts = {"prompt": line.prompt_tokens, "cached": line.cached_tokens, "completion": line.completion_tokens}
    words += [f"{name}={count}" for name, count in counts.items() if count is not None]
    if line.note:
        words.append(escaped(line.note, _PATH_SHOWN, keep=" "))
    return " ".join(words)


@lru_cache(maxsize=1)
def _moment(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def escaped(text: str, length: int, keep: str = "") -> str:
    """At most `length` characters of `text`, escaped outside visible ASCII, so that no input can add a log line."""
    if len(text) <= length and _VISIBLE.fullmatch(text):
        return text
    short = text if len(text) <= length else text[:length] + "…"
    return "".join(c if "!" <= c <= "~" or c in keep + "…" else _escape(c) for c in short)


def _escape(character: str) -> str:
    return "\\x20" if character == " " else character.encode("unicode_escape").decode("ascii")
