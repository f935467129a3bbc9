"""CORS: which pages of other origins may use the server. None may, unless their origin is listed.

A listed page's responses say so, and its preflights are answered; all other rules hold for it as for any client. The
origin is compared exactly, and the response names it alone, never `*`.
"""

from collections.abc import Iterable

from bankml.http.exchange import CompleteResponse, Headers, Request
from bankml.http.head import MessageHead

METHODS = "GET, HEAD, POST, DELETE"
MAX_AGE = 600
"""Seconds for which a browser may reuse the answer to a preflight."""

_ORIGIN, _METHOD, _HEADERS = b"origin", b"access-control-request-method", b"access-control-request-headers"


class AllowedOrigins:
    """The origins (`http://localhost:3000`) whose pages may use the server."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(origin.encode("ascii") for origin in origins)

    def headers(self, head: MessageHead) -> Headers:
        """What a response to the request of this head has besides: nothing for pages that are not listed."""
        if not self._origins:
            return ()
        origin = self._allowed(head)
        if origin is None:
            return (("Vary", "Origin"),)
        exposed = ("Access-Control-Expose-Headers", "Warning")
        return ("Access-Control-Allow-Origin", origin.decode("ascii")), ("Vary", "Origin"), exposed

    def preflights(self, head: MessageHead) -> bool:
        """Whether the head is a listed page's question before a request."""
        asks = head.request_line[0] == b"OPTIONS" and len(head.values(_METHOD)) == 1
        return asks and self._allowed(head) is not None

    def _allowed(self, head: MessageHead) -> bytes | None:
        values = head.values(_ORIGIN)
        return values[0] if len(values) == 1 and values[0] in self._origins else None


def preflight_answer(request: Request) -> CompleteResponse:
    """The answer to a listed page's preflight: every method and the headers it asks for."""
    allowed: list[tuple[str, str]] = [
        ("Access-Control-Allow-Methods", METHODS),
        ("Access-Control-Max-Age", str(MAX_AGE)),
    ]
    if asked := request.headers.get(_HEADERS.decode("ascii")):
        allowed.append(("Access-Control-Allow-Headers", asked))
    if request.headers.get("access-control-request-private-network") == "true":
        allowed.append(("Access-Control-Allow-Private-Network", "true"))
    return CompleteResponse(200, b"", "text/plain; charset=utf-8", allowed)
