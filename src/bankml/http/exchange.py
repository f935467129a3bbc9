"""What passes between the gateway and the application: a request, a reply, and the line that is logged of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from bankml.measure.timing import Timing

JSON = "application/json; charset=utf-8"
EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
TEXT = "text/plain; charset=utf-8"

Headers = Sequence[tuple[str, str]]
"""Further header lines of an answer, name and value."""


@dataclass(frozen=True)
class Request:
    """One HTTP request whose head and body have passed every rule of the wire.

    `headers` has lower-case names; of a repeated header the last value. `arrived` is `time.monotonic()` of its first
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
    """What flows back of one request, for its log line and for measuring; never a word of a message.

    `timing` is there when the native engine completed an answer, `ttft_ms` (milliseconds from the request's first byte
    to its answer's first token) when another did and streamed it.
    """

    status: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    note: str = ""
    timing: Timing | None = None
    ttft_ms: float | None = None


@dataclass(frozen=True)
class BufferedResponse:
    """A whole answer. `body` is what a GET would get: whoever answers a HEAD leaves it out."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Headers = ()


AtOnce = Callable[[Request], tuple[BufferedResponse, RequestOutcome] | None]
"""Answers what takes no waiting, reading or computing worth a thread: it is called on the event loop. None for all
else, which is the application's to answer."""


class Reply(Protocol):
    """Where a response goes. Called from the worker thread that handles the request; every call is safe after the
    client has disconnected."""

    def whole(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        """The whole answer at once, as `BufferedResponse` has it."""

    def start(self, status: int, content_type: str, ping_interval: float | None = None) -> None:
        """Sends the head of a streamed response; from here on the status can no longer change.

        With `ping_interval` (seconds) a stream of server-sent events gets a comment (`: ping`) whenever it was silent
        for so long, also while the caller waits or computes. Each `write` must then be whole events.
        """

    def write(self, data: bytes) -> bool:
        """Queues a part of a streamed response; never waits for the client. False once the client is gone."""

    def finish(self) -> None:
        """The streamed answer is complete."""

    def cancelled(self) -> bool:
        """Whether the client hung up or the server is stopping."""


class Application(Protocol):
    def answer(self, request: Request, reply: Reply) -> RequestOutcome:
        """Answers `request` through `reply`, blocking. Every BankmlError becomes an answer, none is raised."""
