"""An application and what is seen of it: counted where its answers return, told on four paths of the gateway address.

GET /bankml/metrics    the last completions, one record each, and their totals
GET /bankml/usage      what the machine, this process and the engine's use
GET /metrics           the counters, as Prometheus reads them
GET /bankml/ui         a page that shows all this, and asks
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from bankml.api.ui import page
from bankml.errors import MethodNotAllowed
from bankml.http.error_bodies import error_object
from bankml.http.exchange import CompleteResponse, Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.measure.completions import Completions, Record
from bankml.measure.counters import Counters
from bankml.measure.exposition import OPENMETRICS, TEXT
from bankml.measure.prometheus import ServerState, exposition
from bankml.measure.sampler import SharedSample
from bankml.measure.timing import Timing
from bankml.measure.usage import Watched, measure

OWN = ("/bankml/metrics", "/bankml/usage", "/metrics", "/bankml/ui")
METHODS = ("GET", "HEAD")
NO_ROUTE = "none"
"""The route of a request to a path where nothing is."""


class InstrumentedApp(Protocol):
    """An application that can be measured."""

    def answer(self, request: Request, reply: Reply) -> RequestOutcome: ...

    def route(self, request: Request) -> str | None:
        """Which of its paths a request asks for, None for none. There are few: the rest of a path is left out."""

    def state(self) -> ServerState: ...


class MetricsMiddleware:
    """`application`, measured. `watched` are the processes whose memory and processor time `/bankml/usage` tells."""

    def __init__(self, application: InstrumentedApp, watched: Sequence[Watched]) -> None:
        self._application = application
        self._counters = Counters()
        self._completions = Completions()
        self._usage = SharedSample(lambda: json_bytes(measure(watched).as_json()))

    def answer(self, request: Request, reply: Reply) -> RequestOutcome:
        """As the application's. What is told already includes every answer before it on the same connection."""
        told = self._tell(request, self._usage.sample)
        if told is not None:
            whole, line = told
            reply.whole(whole.status, whole.body, whole.content_type, whole.headers)
            return line
        line = self._application.answer(request, reply)
        self._counters.request(self._application.route(request) or NO_ROUTE, line.status)
        if line.completion_tokens is not None:
            self._computed(line)
        return line

    def at_once(self, request: Request) -> tuple[CompleteResponse, RequestOutcome] | None:
        """What is told of the paths here, where it need not be measured first (exchange.AtOnce)."""
        return self._tell(request, self._usage.latest)

    def refused(self, status: int) -> None:
        """A request broke a rule of the wire and did not come here."""
        self._counters.refused(status)

    def _computed(self, line: RequestOutcome) -> None:
        """Tokens were computed. A record is kept of what the native engine did; of another's answers no more is known
        than these counts and, where they are streamed, the time to the first token."""
        counts = (line.prompt_tokens, line.cached_tokens, line.completion_tokens)
        if line.timing is None:
            self._counters.answered(Record(time.time(), None, *counts, ttft_ms=line.ttft_ms))
            return
        record = _record(line.timing, *counts)
        self._counters.answered(record)
        self._completions.record(record)

    # ---- what is told

    def _tell(
        self, request: Request, usage: Callable[[], bytes | None]
    ) -> tuple[CompleteResponse, RequestOutcome] | None:
        """What one of the paths here tells; None for every other path, and for the usage where `usage` gives none."""
        if request.address != "gateway" or request.path not in OWN:
            return None
        note = ""
        if request.method in METHODS:
            whole = self._look(request, usage)
        else:
            error = MethodNotAllowed(f"{request.path} answers {' and '.join(METHODS)} only")
            whole = CompleteResponse(
                error.status, json_bytes(error_object(error)), headers=(("Allow", ", ".join(METHODS)),)
            )
            note = error.kind
        if whole is None:
            return None
        self._counters.request(request.path, whole.status)
        return whole, RequestOutcome(whole.status, note=note)

    def _look(self, request: Request, usage: Callable[[], bytes | None]) -> CompleteResponse | None:
        match request.path:
            case "/bankml/metrics":
                return CompleteResponse(200, self._completions.written())
            case "/bankml/usage":
                sample = usage()
                return None if sample is None else CompleteResponse(200, sample)
            case "/metrics":
                openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
                text = exposition(self._counters.counts(), self._application.state(), openmetrics)
                return CompleteResponse(200, text, OPENMETRICS if openmetrics else TEXT)
            case _:
                shown = page.load()
                return CompleteResponse(200, shown.body, "text/html; charset=utf-8", shown.headers)


def _record(timing: Timing, prompt: int | None, cached: int | None, completion: int | None) -> Record:
    return Record(
        time=time.time(),
        model=timing.model,
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        prompt_ms=timing.prompt_ms,
        ttft_ms=timing.ttft_ms,
        eval_ms=timing.eval_ms,
        finish=timing.finish,
        grammar_ms=timing.grammar_ms,
        resampled=timing.resampled,
        energy_j=timing.energy_j,
        request_sha256=timing.request_sha256,
        response_sha256=timing.response_sha256,
    )
