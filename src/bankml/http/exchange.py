"""The interface between the HTTP server and an application: a request, a reply, and the outcome that is logged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from bankml.measure.timing import Timing

JSON = "application/json; charset=utf-8"
EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
TEXT = "text/plain; charset=utf-8"

Headers = Sequence[tuple[str, str]]
"""Additional header fields of a response, name and value."""


@dataclass(frozen=True)
class Request:
    """One HTTP request whose head and body have passed every rule and limit.

    `headers` has lower-case names and the last value of a repeated header. `arrived` is `time.monotonic()` of its first
    byte.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    address: Literal["gateway", "engine"]
    arrived: float


@dataclass(frozen=True)
class RequestOutcome:
    """The status, token counts and timing of one request, for its log line and the metrics; no content.

    `timing` is set when the native engine generated, `ttft_ms` (milliseconds from the request's first byte to the first
    token of its response) when llama-server did and streamed.
    """

    status: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    note: str = ""
    timing: Timing | None = None
    ttft_ms: float | None = None


@dataclass(frozen=True)
class CompleteResponse:
    """A response that is not streamed. `body` is that of a GET; the server omits it for a HEAD."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Headers = ()


AtOnce = Callable[[Request], tuple[CompleteResponse, RequestOutcome] | None]
"""Called on the event loop: handles requests that need no waiting, reading or computing worth a thread. None for all
others, which the application handles."""


class Reply(Protocol):
    """Where a response goes. Called from the worker thread that handles the request; every call is safe after the
    client has disconnected."""

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        """Sends a complete response, as in `CompleteResponse`."""

    def start(self, status: int, content_type: str, ping_interval: float | None = None, headers: Headers = ()) -> None:
        """Sends the head of a streamed response; from here on the status can no longer change.

        With `ping_interval` (seconds) a stream of server-sent events gets a comment (`: ping`) whenever it was silent
        for so long, also while the caller waits or computes. Each `write` must then be complete events.
        """

    def write(self, data: bytes) -> bool:
        """Queues a part of a streamed response; never waits for the client. False once the client is gone."""

    def finish(self) -> None:
        """The streamed response is complete."""

    def cancelled(self) -> bool:
        """Whether the client has disconnected or the server is stopping."""


class Application(Protocol):
    def answer(self, request: Request, reply: Reply) -> RequestOutcome:
        """Handles `request` through `reply`, blocking. Every BankmlError becomes a response, none is raised."""
