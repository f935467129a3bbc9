"""The loaded model: the queue before it, switching it for another, and unloading it.

All requests share one queue, whichever model they name. Requests for the loaded model use it together; one for another
model waits until they are done, and those behind it wait with it. The loaded model is dropped, weights and KV cache,
before the next is verified and read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from bankml.engine.memory import give_back_memory
from bankml.engine.queue import AdmissionQueue
from bankml.errors import Refused, Truncated
from bankml.library.facts import FileFacts
from bankml.library.live import LiveAnswers
from bankml.library.reference import PinnedFile, Reference
from bankml.library.resident import Resident
from bankml.model.limits import context_cells
from bankml.receipt.issuer import UNSIGNED
from bankml.threads import start_thread

FOR_GOOD = None
"""No time limit: the model stays loaded until another is requested."""

LEASE_CHECK_S = 0.5
"""Interval in seconds at which a loaded model's lease is checked."""


class Names(Protocol):
    """Resolves names to models; no model file is opened."""

    def resolve(self, name: str | None) -> Reference:
        """The model named `name`; None is the startup model.

        Raises RequestError for an invalid name, NotFound for an unknown one, Refused for a model that is unavailable.
        """

    def references(self) -> Sequence[Reference]:
        """Every model that has a name, each once, the startup model first."""

    def names_of(self, source: PinnedFile) -> Sequence[str]:
        """Every name of `source`, its own first."""


class ModelOpener(Protocol):
    """Loads models."""

    @property
    def n_ctx(self) -> int:
        """The configured context in tokens; a model trained on fewer gets those."""

    def facts(self, source: PinnedFile) -> FileFacts:
        """What the header of `source`'s file says, and why the model is unsupported."""

    def check(self, source: PinnedFile) -> None:
        """Raises Refused, Truncated for what is known before the loaded model has to be dropped."""

    def open(self, source: PinnedFile) -> Resident:
        """Verifies and loads `source`. Raises Refused, Truncated."""


@dataclass(frozen=True)
class Lease:
    """How long the loaded model stays unless it is requested again: until `until` (`time.monotonic()`), which is
    `expires_at` in seconds since the epoch. Both None: no limit."""

    until: float | None = None
    expires_at: float | None = None

    @classmethod
    def of(cls, seconds: float | None) -> Lease:
        return cls() if seconds is FOR_GOOD else cls(time.monotonic() + seconds, time.time() + seconds)

    @property
    def expired(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until


@dataclass(frozen=True)
class Refusal:
    """A model that was requested and refused: `name`, the reason that clients received, and when, in seconds since the
    epoch."""

    name: str
    reason: str
    time: float


class Library:
    """The available models, of which at most one is loaded.

    `resident` is the loaded model or None, `last` describes the model that was loaded last, and `asked` is the
    reference it was last requested by; `refused` is the last refusal, None once that model has been loaded after all. A
    model loaded for a metadata query stays for `default_keep` seconds. Methods that change `resident` are called in a
    `turn`, or in a `share` of the model that they are about. `parallel` requests share a model at most, and `limit`
    requests wait (None: any number).
    """

    def __init__(
        self,
        known: Names,
        opener: ModelOpener,
        resident: Resident,
        default_keep: float | None = FOR_GOOD,
        parallel: int = 1,
        limit: int | None = None,
    ) -> None:
        self._names = known
        self._opener = opener
        self._default_keep = default_keep
        self.parallel = parallel
        self._queue = AdmissionQueue(parallel, limit)
        self._loading = threading.Lock()
        self._lease = Lease()
        self.asked = Reference(resident.source.name, resident.source)
        self.resident: Resident | None = resident
        self.last = resident.opened
        self.refused: Refusal | None = None
        self.live = LiveAnswers()
        self.engine_address: str | None = None  # HOST:PORT of llama-server's endpoints, for GET /bankml
        self.issuer = UNSIGNED  # of the receipts of every model

    @property
    def n_ctx(self) -> int:
        """The context of each loaded model, in tokens; a model trained on fewer has those."""
        return context_cells(self._opener.n_ctx)

    # ---- names

    def resolve(self, name: str | None) -> Reference:
        """The model named `name`; None means the startup model. Raises RequestError, NotFound, Refused."""
        return self._names.resolve(name)

    def references(self) -> Sequence[Reference]:
        """Every model that has a name, the startup model first."""
        return self._names.references()

    def names_of(self, source: PinnedFile) -> Sequence[str]:
        """Every name of `source`, its own first."""
        return self._names.names_of(source)

    def facts(self, source: PinnedFile) -> FileFacts:
        """What the header of `source`'s file says; nothing is loaded."""
        return self._opener.facts(source)

    # ---- the queue

    @contextmanager
    def turn(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Waits for all requests before it and keeps others out for the `with` block. Raises Cancelled if
        `cancelled()` is true first, Busy where the queue is full."""
        with self._queue.turn(cancelled):
            yield

    @contextmanager
    def share(self, reference: Reference, cancelled: Callable[[], bool], answers: int = 1) -> Iterator[None]:
        """The same, together with other requests for the model of `reference`, for that many answers at once."""
        with self._queue.turn(cancelled, reference.source, answers):
            yield

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a model."""
        return self._queue.waiting

    @property
    def processing(self) -> int:
        """The number of requests that use the model."""
        return self._queue.inside

    @property
    def busy(self) -> bool:
        """True while a request uses the model."""
        return self.processing > 0

    # ---- the loaded model

    def resident_as(self, reference: Reference) -> Resident | None:
        """The loaded model if it is the one of `reference`. Outside a turn it may be switched at any time."""
        resident = self.resident
        return resident if resident is not None and resident.source == reference.source else None

    def ready(self, reference: Reference) -> Resident:
        """The model of `reference`, loaded: the current one, or a new one in its place.

        Raises Refused, Truncated. What the header shows is checked before the current model is dropped; what only the
        complete file shows, after.
        """
        with self._loading:
            resident = self.resident_as(reference)
            if resident is None:
                self.resident = resident = self._opened(reference)
                self.last = resident.opened
                self._lease = Lease()
            if self.refused is not None and self.refused.name == reference.name:
                self.refused = None
            self.asked = reference
            return resident

    def _opened(self, reference: Reference) -> Resident:
        try:
            self._opener.check(reference.source)
            self.drop()
            return self._opener.open(reference.source)
        except (Refused, Truncated) as error:
            self.refused = Refusal(reference.name, error.public_message, time.time())
            raise

    def drop(self) -> None:
        """Unloads the current model, weights and KV cache, if there is one."""
        resident, self.resident = self.resident, None
        if resident is not None:
            resident.close()
            del resident
            give_back_memory()

    def keep(self, seconds: float | None) -> None:
        """Keeps the loaded model for `seconds` from now, FOR_GOOD, or unloads it (0): the last of those that share it
        does."""
        with self._loading:
            if seconds is not FOR_GOOD and seconds <= 0 and self.processing <= 1:
                self.drop()
            self._lease = Lease.of(seconds)

    @property
    def expires_at(self) -> float | None:
        """When the loaded model's lease ends, in seconds since the epoch; None: never."""
        return self._lease.expires_at

    def look(self, cancelled: Callable[[], bool], reference: Reference | None = None) -> Resident:
        """A loaded model for metadata queries: that of `reference`, or the current one, or else the startup model.
        Raises Cancelled and what `ready` raises."""
        resident = self.resident if reference is None else self.resident_as(reference)
        if resident is not None:
            return resident
        with self.turn(cancelled):
            if reference is None and self.resident is not None:
                return self.resident
            resident = self.ready(reference or self.resolve(None))
            self.keep(self._default_keep)
            return resident

    def expire(self) -> None:
        """Unloads the model if its lease has ended and no request uses it."""
        if self.resident is None or not self._lease.expired or self.busy:
            return
        with self.turn(lambda: False):
            if self._lease.expired:
                self.drop()

    def start_reaper(self) -> None:
        """Starts a daemon thread that checks the lease twice a second."""

        def reap() -> None:
            while True:
                time.sleep(LEASE_CHECK_S)
                self.expire()

        start_thread(reap, "bankml-reaper")
