"""One worker of a Ray cluster, in a process of its own on some node. It imports no Ray."""

from __future__ import annotations

import platform
import threading
from dataclasses import dataclass
from typing import Any

from bankml.batch.computation import Computation
from bankml.batch.local import LocalWorker, batch_library
from bankml.batch.model_copy import CopyOptions, ModelCopy, verified_copy
from bankml.batch.request import BatchRequest
from bankml.batch.worker import WorkerLost
from bankml.errors import BankmlError


@dataclass(frozen=True)
class ActorRefused:
    """The worker on `node` answers nothing; `reason` is the end of a sentence."""

    node: str
    reason: str


@dataclass(frozen=True)
class ActorReady:
    """The worker on `node` has verified its copy of the model."""

    node: str
    computation: Computation


class ModelActor:
    """Verifies its own copy of the model before it answers; also after a restart, which begins with the constructor.
    Refusals are values: an exception would be a failure that Ray retries."""

    def __init__(self, model: ModelCopy, options: CopyOptions, moment: float, content: Any = None) -> None:
        self._state: ActorReady | ActorRefused
        self._lock = threading.Lock()
        node = platform.node()
        try:
            library = batch_library(verified_copy(model, content), options.load_options, moment)
        except BankmlError as error:
            self._state = ActorRefused(node, f"is refused: {error.message}")
            return
        except MemoryError:
            self._state = ActorRefused(node, "has too little memory for the model")
            return
        self._worker = LocalWorker(library)
        self._state = ActorReady(node, self._worker.computation)

    def ready(self) -> ActorReady | ActorRefused:
        return self._state

    def answer(self, request: BatchRequest) -> bytes | ActorRefused:
        """The line of the output."""
        if isinstance(self._state, ActorRefused):
            return self._state
        try:
            return self._worker.answer(request, _never)
        except WorkerLost as lost:
            with self._lock:
                self._state = ActorRefused(self._state.node, lost.reason)
            return self._state


def _never() -> bool:
    return False
