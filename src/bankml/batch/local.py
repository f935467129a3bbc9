"""Answers requests in this process, on the path of every request: `api` reads them, `engine` computes them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from bankml import __version__
from bankml.api.routes import NativeApplication
from bankml.batch.computation import Computation
from bankml.batch.entry import answer_line
from bankml.batch.request import BatchRequest
from bankml.batch.worker import WorkerLost
from bankml.engine.aligned_slots import reuse_whole_batches
from bankml.errors import Cancelled
from bankml.gate.verify import Verified
from bankml.http.collected_reply import CollectedReply
from bankml.http.exchange import Request
from bankml.library.facts import FileFacts
from bankml.library.load import LoadOptions, VerifyingOpener, load
from bankml.library.reference import PinnedFile
from bankml.library.registry import Registry
from bankml.library.residency import Library
from bankml.library.resident import Resident

CLOCK = "strftime_now"
"""The function by which a template shows the date."""

UNAVAILABLE = (502, 503, 504)
"""Statuses that say nothing of the request: it has no answer yet."""

ATTEMPTS = 5
PAUSE_S = 0.2


def shows_the_date(template: str) -> bool:
    return CLOCK in template


def prepared(resident: Resident, moment: float) -> Resident:
    """A model that was just loaded, for a batch: slots that reuse whole micro-batches, and one moment for all prompts:
    `moment` where its template shows the date, else 0."""
    reuse_whole_batches(resident.engine)
    resident.moment = moment if shows_the_date(resident.template.source) else 0.0
    return resident


@dataclass(frozen=True)
class BatchOpener:
    """Loads models for a batch."""

    opener: VerifyingOpener
    moment: float

    @property
    def n_ctx(self) -> int:
        return self.opener.n_ctx

    def facts(self, source: PinnedFile) -> FileFacts:
        return self.opener.facts(source)

    def check(self, source: PinnedFile) -> None:
        self.opener.check(source)

    def open(self, source: PinnedFile) -> Resident:
        return prepared(self.opener.open(source), self.moment)


def batch_library(
    verified: Verified, options: LoadOptions, moment: float, registry: str | None = None, any_model: bool = False
) -> Library:
    """The library of a batch, its startup model loaded. `options.parallel` is a number. Raises what `load` raises."""
    assert options.parallel is not None
    resident = prepared(load(verified, options), moment)
    names = Registry(registry, resident.source, any_model=any_model)
    opener = BatchOpener(VerifyingOpener(options), moment)
    return Library(names, opener, resident, parallel=options.parallel)


class LocalWorker:
    """The models of `library`, which this process computes with."""

    def __init__(self, library: Library, name: str = "this process") -> None:
        self.name = name
        self._library = library
        self._application = NativeApplication(library)

    @property
    def computation(self) -> Computation:
        """What the model that is loaded computes with."""
        assert self._library.resident is not None  # as long as no other model is requested
        return Computation.of_resident(self._library.resident, __version__)

    @property
    def width(self) -> int:
        return self._library.parallel

    def answer(self, request: BatchRequest, cancelled: Callable[[], bool]) -> bytes:
        """Raises WorkerLost where the model cannot be used any more, Cancelled."""
        for attempt in range(ATTEMPTS):
            reply = CollectedReply(cancelled)
            sent = Request("POST", request.url, "", {}, request.body, "gateway", time.monotonic())
            self._application.answer(sent, reply)
            if cancelled():
                raise Cancelled
            body = json.loads(reply.body)
            if reply.status not in UNAVAILABLE:
                return answer_line(request, reply.status, body)
            time.sleep(PAUSE_S * 2**attempt)
        raise WorkerLost(f"cannot answer: {body['error']['message']}")

    def resume(self, cancelled: Callable[[], bool]) -> None:
        """It is never paused."""

    def interrupt(self) -> None:
        """The engine asks `cancelled` between two tokens."""

    def close(self) -> None:
        self._library.drop()
