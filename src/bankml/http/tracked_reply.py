"""One place where a request that fails, is refused or is cancelled becomes a response.

Before the first byte an error is a response of its own status. After it the status is sent, so the error becomes an
event of the stream (a server-sent event, or a line of NDJSON) and the stream ends.
"""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bankml.errors import BankmlError, Busy, Cancelled, MethodNotAllowed, OutOfMemory
from bankml.http.error_bodies import shape_of
from bankml.http.exchange import JSON, NDJSON, Headers, Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes, ndjson_line, sse_event

CLIENT_LEFT = 499
"""The status the log gives a request whose client disconnected, as nginx does; it is never sent."""

CANCELLED = "cancelled"
"""The note of such a request in the log and in the measurements."""

RETRY_AFTER = "1"
"""Seconds after which a client may try again what was refused because the server is busy."""

log = logging.getLogger("bankml.http")


class RequestCancelled(Cancelled):
    """Cancelled after tokens were computed: `outcome` has their counts, for the log and the measurements."""

    def __init__(self, outcome: RequestOutcome) -> None:
        super().__init__()
        self.outcome = outcome


@dataclass
class TrackedReply:
    """A Reply that records whether a stream has begun and in which content type."""

    reply: Reply
    started: bool = False
    content_type: str = ""

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        self.reply.whole(status, body, content_type, headers)

    def start(self, status: int, content_type: str, ping_interval: float | None = None, headers: Headers = ()) -> None:
        self.started, self.content_type = True, content_type
        self.reply.start(status, content_type, ping_interval, headers)

    def write(self, data: bytes) -> bool:
        return self.reply.write(data)

    def finish(self) -> None:
        self.reply.finish()

    def cancelled(self) -> bool:
        return self.reply.cancelled()


SomeReply = TypeVar("SomeReply", bound=TrackedReply)


def respond(
    request: Request, reply: SomeReply, handle: Callable[[Request, SomeReply], RequestOutcome]
) -> RequestOutcome:
    """Calls `handle`; every exception it raises becomes a response or ends the stream that has begun."""
    try:
        return handle(request, reply)
    except Cancelled as cancelled:
        if not reply.started:
            _send_unavailable(request, reply)
        known = cancelled.outcome if isinstance(cancelled, RequestCancelled) else None
        return known or RequestOutcome(CLIENT_LEFT, note=CANCELLED)
    except BankmlError as error:
        return send_error(error, request, reply)
    except MemoryError:
        return send_error(OutOfMemory(), request, reply)
    except Exception as error:
        # A defect. The message may quote a user's text, so only the type and the place are logged.
        log.error("%s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
        return send_error(BankmlError("internal error; the server's log has the traceback"), request, reply)


def _send_unavailable(request: Request, reply: Reply) -> None:
    """A 503 for a request that was cancelled before its response began: read only where the server is stopping."""
    error = Busy("the server is stopping, or the client disconnected: this request was not processed")
    reply.whole(error.status, json_bytes(shape_of(request.path, request.address)(error)))


def send_error(error: BankmlError, request: Request, reply: TrackedReply) -> RequestOutcome:
    """Sends `error` in the shape that clients of the request's path expect."""
    body = shape_of(request.path, request.address)(error)
    if reply.started:
        name = str(body.get("type", ""))
        reply.write(ndjson_line(body) if reply.content_type == NDJSON else sse_event(body, name))
        reply.finish()
        return RequestOutcome(200, note=f"interrupted: {error.kind}")
    headers: Headers = ()
    if isinstance(error, MethodNotAllowed):
        headers = (("Allow", ", ".join(error.allowed)),)
    if isinstance(error, Busy):
        headers = (("Retry-After", RETRY_AFTER),)
    reply.whole(error.status, json_bytes(body), JSON, headers)
    return RequestOutcome(error.status, note=error.kind)
