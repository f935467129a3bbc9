"""The receipt log over HTTP, read-only, below `/bankml/log/` of the gateway address (C2SP tlog-tiles).

GET /bankml/log/checkpoint         the note about every receipt so far
GET /bankml/log/tile/…             hashes, and with tile/entries/… the receipts
"""

from bankml.api.metrics_middleware import InstrumentedApp
from bankml.errors import MethodNotAllowed, NotFound
from bankml.http.exchange import TEXT, Headers, Reply, Request, RequestOutcome
from bankml.http.tracked_reply import TrackedReply, respond
from bankml.measure.prometheus import ServerState
from bankml.transparency.tiles import CHECKPOINT, TileName
from bankml.transparency.writer import LogWriter

PREFIX = "/bankml/log/"
METHODS = ("GET", "HEAD")
BYTES = "application/octet-stream"
NOT_KEPT: Headers = (("Cache-Control", "no-cache"),)
KEPT: Headers = (("Cache-Control", "max-age=31536000, immutable"),)


class LogRoutes:
    """`application`, and beside it the log that `writer` writes."""

    def __init__(self, application: InstrumentedApp, writer: LogWriter) -> None:
        self._application = application
        self._writer = writer

    def answer(self, request: Request, reply: Reply) -> RequestOutcome:
        """As the application's, for every other path."""
        if not self._is_here(request):
            return self._application.answer(request, reply)
        return respond(request, TrackedReply(reply), self._answer)

    def route(self, request: Request) -> str | None:
        return PREFIX.rstrip("/") if self._is_here(request) else self._application.route(request)

    def state(self) -> ServerState:
        return self._application.state()

    def _is_here(self, request: Request) -> bool:
        return request.address == "gateway" and request.path.startswith(PREFIX)

    def _answer(self, request: Request, reply: TrackedReply) -> RequestOutcome:
        if request.method not in METHODS:
            raise MethodNotAllowed(f"{PREFIX} answers {' and '.join(METHODS)} only", METHODS)
        path = request.path.removeprefix(PREFIX)
        if path == CHECKPOINT:
            reply.whole(200, self._writer.checkpoint(), TEXT, NOT_KEPT)
        else:
            reply.whole(200, self._file(path), BYTES, KEPT)
        return RequestOutcome(200)

    def _file(self, path: str) -> bytes:
        try:
            if TileName.of(path) is not None:
                return self._writer.read(path)
        except (OSError, ValueError):  # a tile that the log has not, or of which it has less
            pass
        raise NotFound(f"the log has no such file; it has {CHECKPOINT}, and the tiles of the tree that this is about")
