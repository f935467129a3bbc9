"""The one model that is in memory: who has the turn to use it, when it is switched for another, and when it goes.

All requests stand in one line, whichever model they ask for. Whoever has the turn may have the model it needs made
resident; the one before is dropped, weights and K/V cache, before the next is verified and read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from bankml.engine.memory import give_back_memory
from bankml.engine.queue import FifoLock
from bankml.errors import Refused, Truncated
from bankml.library.facts import FileFacts
from bankml.library.reference import PinnedFile, Reference
from bankml.library.resident import Resident
from bankml.model.limits import context_cells

FOR_GOOD = None
"""A model that is kept this long stays until another is asked for."""

REAPING_S = 0.5
"""How often it is looked whether the time of the resident model is up, in seconds."""


class Names(Protocol):
    """What may be asked for by name. Names are looked up, no file of a model is opened."""

    def resolve(self, name: str | None) -> Reference:
        """What `name` stands for; None is the startup model.

        Raises RequestError for what cannot be a name, NotFound for a name that stands for nothing, Refused where what
        it stands for is not to be had.
        """

    def references(self) -> Sequence[Reference]:
        """Everything that has a name, each once, the startup model first."""

    def names_of(self, source: PinnedFile) -> Sequence[str]:
        """Every name that leads to `source`, its own first."""


class ModelOpener(Protocol):
    """Makes what a name stands for resident."""

    @property
    def n_ctx(self) -> int:
        """The context that is asked for, in tokens; a model trained on fewer has those."""

    def facts(self, source: PinnedFile) -> FileFacts:
        """What the header of its file says of `source`, and why it is not played."""

    def judge(self, source: PinnedFile) -> None:
        """Raises Refused, Truncated for what can be told before anything else has to go."""

    def open(self, source: PinnedFile) -> Resident:
        """Raises Refused, Truncated."""


@dataclass(frozen=True)
class Lease:
    """How long the resident model stays, unless it is asked for again: until the moment `until` of `time.monotonic()`,
    `expires_at` in seconds since the epoch. Both None: for good."""

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
    """What was asked for and not opened: `name`, the sentence that clients were told, and when, in seconds since the
    epoch."""

    name: str
    reason: str
    time: float


class Library:
    """The models that may be asked for, of which one is resident.

    `resident` is None where none is, `last` what is told of the one that was resident last, and `asked` what that was
    last asked for as; `refused` is the last refusal to open one, None once that one is opened after all. A model that
    is loaded only to be looked at stays for `default_keep` seconds. Whatever changes what is resident is called by who
    has the turn.
    """

    def __init__(
        self, known: Names, opener: ModelOpener, resident: Resident, default_keep: float | None = FOR_GOOD
    ) -> None:
        self._names = known
        self._opener = opener
        self._default_keep = default_keep
        self._queue = FifoLock()
        self._lease = Lease()
        self.asked = Reference(resident.source.name, resident.source)
        self.resident: Resident | None = resident
        self.last = resident.opened
        self.refused: Refusal | None = None
        self.engine_address: str | None = None  # HOST:PORT of llama-server's endpoints, for GET /bankml

    @property
    def n_ctx(self) -> int:
        """The context that each model is opened with, in tokens; one trained on fewer has those."""
        return context_cells(self._opener.n_ctx)

    # ---- names

    def resolve(self, name: str | None) -> Reference:
        """What `name` stands for; no name means the startup model. Raises RequestError, NotFound, Refused."""
        return self._names.resolve(name)

    def references(self) -> Sequence[Reference]:
        """Everything that has a name, the startup model first."""
        return self._names.references()

    def names_of(self, source: PinnedFile) -> Sequence[str]:
        """Every name that leads to `source`, its own first."""
        return self._names.names_of(source)

    def facts(self, source: PinnedFile) -> FileFacts:
        """What the header of its file says of `source`; nothing is loaded."""
        return self._opener.facts(source)

    # ---- the line

    @contextmanager
    def turn(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Stands in line and has the turn for the `with` block. Raises Cancelled if `cancelled()` turns true before."""
        with self._queue.turn(cancelled):
            yield

    @property
    def waiting(self) -> int:
        """How many stand in line behind the one whose turn it is."""
        return self._queue.waiting

    @property
    def busy(self) -> bool:
        """Whether it is anybody's turn."""
        return self._queue.busy

    # ---- what is resident

    def resident_as(self, reference: Reference) -> Resident | None:
        """The resident model if `reference` stands for it. It may be switched before it is one's turn."""
        resident = self.resident
        return resident if resident is not None and resident.source == reference.source else None

    def ready(self, reference: Reference) -> Resident:
        """The resident model that `reference` stands for: the one that is, or the one that takes its place.

        Raises Refused, Truncated. What the header shows is told before the model that is resident goes; what only the
        whole file shows, after.
        """
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
            self._opener.judge(reference.source)
            self.drop()
            return self._opener.open(reference.source)
        except (Refused, Truncated) as error:
            self.refused = Refusal(reference.name, error.public_message, time.time())
            raise

    def drop(self) -> None:
        """Lets go of the resident model, its weights and its K/V cache, if there is one."""
        resident, self.resident = self.resident, None
        if resident is not None:
            resident.close()
            del resident
            give_back_memory()

    def keep(self, seconds: float | None) -> None:
        """The resident model stays this long from now, FOR_GOOD, or no longer at all (0)."""
        if seconds is not FOR_GOOD and seconds <= 0:
            self.drop()
        self._lease = Lease.of(seconds)

    @property
    def expires_at(self) -> float | None:
        """When the resident model goes, in seconds since the epoch; None: not by itself."""
        return self._lease.expires_at

    def look(self, cancelled: Callable[[], bool], reference: Reference | None = None) -> Resident:
        """A model to ask something of that takes no computing: what `reference` stands for, or whichever is resident,
        or else the startup model. Raises Cancelled and what `ready` raises."""
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
        """Drops the resident model if its time is up and nobody is using it."""
        if self.resident is None or not self._lease.expired or self.busy:
            return
        with self.turn(lambda: False):
            if self._lease.expired:
                self.drop()

    def start_reaper(self) -> None:
        """From now on a thread of its own looks, twice a second, whether the time of the resident model is up."""

        def reap() -> None:
            while True:
                time.sleep(REAPING_S)
                self.expire()

        threading.Thread(target=reap, name="bankml-reaper", daemon=True).start()
