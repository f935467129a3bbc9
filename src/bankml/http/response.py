"""A response's head: its fields, and the bytes of simple heads without h11."""

import re
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

import h11

from bankml import __version__
from bankml.http.exchange import Headers

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_PLAIN_VALUE = re.compile(r"[!-~]+(?: [!-~]+)*")


def response(status: int, content_type: str, headers: Headers, length: int | None, closing: bool) -> h11.Response:
    """The head for h11. `length` is the body's bytes, None where it is streamed; `closing`: the connection closes."""
    fields = _fields(content_type, headers)
    if length is not None:
        fields["Content-Length"] = str(length)
    if closing:
        fields["Connection"] = "close"
    return h11.Response(status_code=status, headers=list(fields.items()), reason=_REASONS.get(status, ""))


def plain_head(status: int, content_type: str, headers: Headers, length: int | None) -> bytes | None:
    """The bytes that h11 makes of `response` on a persistent HTTP/1.1 connection, at a fifth of the cost; None for any
    head that h11 would treat differently."""
    if status != 200 or headers or length is None or not _PLAIN_VALUE.fullmatch(content_type):
        return None
    lines = [f"{name}: {value}\r\n" for name, value in _fields(content_type, ()).items()]
    return f"HTTP/1.1 200 {_REASONS[200]}\r\n{''.join(lines)}Content-Length: {length}\r\n\r\n".encode("ascii")


def _fields(content_type: str, headers: Headers) -> dict[str, str]:
    return {
        "Date": _date(int(time.time())),
        "Server": f"bankml/{__version__}",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Content-Type": content_type,
        **dict(headers),
    }


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
