"""An application and what is seen of it: counted where its answers return, told on four paths of the gateway address.

GET /bankml/metrics    the last completions, one record each, and their totals
GET /bankml/usage      what the machine, this process and the engine's use
GET /metrics           the counters, as Prometheus reads them
GET /bankml/ui         a page that shows all this, and asks
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bankml.api.exchange import JSON, LogLine, Reply, Request
from bankml.api.json_out import written
from bankml.api.refusals import error_object
from bankml.api.ui import page
from bankml.errors import MethodNotAllowed
from bankml.measure.completions import Completions, Record
from bankml.measure.counters import Counters
from bankml.measure.exposition import OPENMETRICS, TEXT
from bankml.measure.prometheus import State, exposition
from bankml.measure.sampler import Sampler
from bankml.measure.timing import Timing
from bankml.measure.usage import Watched, measure

METHODS = ("GET", "HEAD")
NO_ROUTE = "none"
"""The route of a request to a path where nothing is."""


class Observed(Protocol):
    """An application that can be measured."""

    def answer(self, request: Request, reply: Reply) -> LogLine: ...

    def route(self, request: Request) -> str | None:
        """Which of its paths a request asks for, None for none. There are few: the rest of a path is left out."""

    def state(self) -> State: ...


class Measured:
    """`application`, measured. `watched` are the processes whose memory and processor time `/bankml/usage` tells."""

    def __init__(self, application: Observed, watched: Sequence[Watched]) -> None:
        self._application = application
        self._counters = Counters()
        self._completions = Completions()
        self._usage = Sampler(lambda: written(measure(watched).as_json()))
        self._own: Mapping[str, Callable[[Request, Reply], None]] = {
            "/bankml/metrics": self._tell_completions,
            "/bankml/usage": self._tell_usage,
            "/metrics": self._tell_counters,
            "/bankml/ui": self._show_page,
        }

    def answer(self, request: Request, reply: Reply) -> LogLine:
        """As the application's. What is told already includes every answer before it on the same connection."""
        own = self._own.get(request.path) if request.address == "gateway" else None
        if own is None:
            line = self._application.answer(request, reply)
            self._counters.request(self._application.route(request) or NO_ROUTE, line.status)
        else:
            line = self._tell(own, request, reply)
            self._counters.request(request.path, line.status)
        if line.completion_tokens is not None:
            self._computed(line)
        return line

    def refused(self, status: int) -> None:
        """A request broke a rule of the wire and did not come here."""
        self._counters.refused(status)

    def _computed(self, line: LogLine) -> None:
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

    def _tell(self, own: Callable[[Request, Reply], None], request: Request, reply: Reply) -> LogLine:
        if request.method not in METHODS:
            error = MethodNotAllowed(f"{request.path} answers {' and '.join(METHODS)} only")
            reply.whole(error.status, written(error_object(error)), JSON, (("Allow", ", ".join(METHODS)),))
            return LogLine(error.status, note=error.kind)
        own(request, reply)
        return LogLine(200)

    def _tell_completions(self, request: Request, reply: Reply) -> None:
        reply.whole(200, self._completions.written())

    def _tell_usage(self, request: Request, reply: Reply) -> None:
        reply.whole(200, self._usage.sample())

    def _tell_counters(self, request: Request, reply: Reply) -> None:
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        body = exposition(self._counters.counts(), self._application.state(), openmetrics)
        reply.whole(200, body, OPENMETRICS if openmetrics else TEXT)

    def _show_page(self, request: Request, reply: Reply) -> None:
        shown = page.load()
        reply.whole(200, shown.body, "text/html; charset=utf-8", shown.headers)


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
