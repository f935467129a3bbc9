"""What answers requests: an engine of this process, a server, an actor of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bankml.batch.request import BatchRequest


class WorkerLost(Exception):
    """A worker answers no more: it cannot be reached, it was refused, or it lied. `reason` is the end of a sentence
    that begins with its name."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkerPaused(Exception):
    """A worker has lost what it was computing, and may answer again later (`Worker.resume`)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Paused:
    """The name of a worker that is waited for, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Lost:
    """The name of a worker that answers no more, and why."""

    name: str
    reason: str

    @property
    def sentence(self) -> str:
        return f"{self.name} {self.reason}"


class Worker(Protocol):
    """Computes the answers of requests, up to `width` at once."""

    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int: ...

    def answer(self, request: BatchRequest, cancelled: Callable[[], bool]) -> bytes:
        """The line of the output. Called by `width` threads. Raises WorkerLost, WorkerPaused, and Cancelled once
        `cancelled()` is true."""

    def resume(self, cancelled: Callable[[], bool]) -> None:
        """Called after WorkerPaused: waits until it answers again. Raises WorkerLost, Cancelled."""

    def interrupt(self) -> None:
        """The answers that are being computed are not wanted any more: `cancelled()` of each is true."""

    def close(self) -> None:
        """No answer is being computed any more."""
