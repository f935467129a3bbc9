"""Answers requests with a Ray cluster: one actor a node, or as many as are asked for. Ray restarts an actor whose
process or node is lost; what it was computing goes to another one."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from bankml.batch.actor import ActorReady, ActorRefused, ModelActor
from bankml.batch.computation import Computation
from bankml.batch.model_copy import CopyOptions, ModelCopy
from bankml.batch.request import BatchRequest
from bankml.batch.worker import WorkerLost, WorkerPaused
from bankml.errors import Cancelled, Refused, UsageError
from bankml.files import problem

POLL_S = 0.5
"""Seconds between two looks whether an answer is still wanted."""

PATIENCE_S = 30.0
"""Seconds for which a further worker is waited for before the batch begins."""

RESTARTS = 20
"""How often Ray starts an actor anew, which a full memory may end again and again."""

Note = Callable[[str], None]


@dataclass(frozen=True)
class ClusterOptions:
    """`address` None: $RAY_ADDRESS, else a cluster of this machine alone. `workers` None: one a node; `cpus` None: all
    that every node has."""

    address: str | None = None
    workers: int | None = None
    cpus: int | None = None


def require_ray() -> Any:
    """The package. Raises UsageError where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise UsageError("--ray needs the package ray: pip install 'bankml[ray]'") from None


@contextmanager
def ray_workers(
    model: ModelCopy, options: CopyOptions, cluster: ClusterOptions, moment: float, note: Note
) -> Iterator[Sequence[RayWorker]]:
    """The workers that have verified their copies; `note` names the others. Raises UsageError, FileProblem, Refused
    where there is none."""
    ray = require_ray()
    own = not ray.is_initialized()
    if own:
        try:
            ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise UsageError(f"the Ray cluster cannot be used: {error}") from None
    made: list[RayWorker] = []
    try:
        made += _made(ray, model, options, cluster, moment)
        yield _usable(made, note)
    finally:
        for worker in made:
            worker.close()
        if own:
            ray.shutdown()


def _made(
    ray: Any, model: ModelCopy, options: CopyOptions, cluster: ClusterOptions, moment: float
) -> Iterator[RayWorker]:
    nodes = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    usable = [count for count in nodes if count]
    if not usable:
        raise Refused("no node of the Ray cluster has a CPU for a worker")
    cpus = cluster.cpus or min(usable)
    count = cluster.workers or len([one for one in usable if one >= cpus])
    content = ray.put(_content(model.path)) if model.shipped else None
    remote = ray.remote(ModelActor).options(
        num_cpus=cpus,
        max_restarts=RESTARTS,
        max_task_retries=0,  # what a lost worker was computing goes to another one
        max_concurrency=options.parallel + 1,
        scheduling_strategy="SPREAD",
    )
    options = replace(options, threads=options.threads or cpus)
    for number in range(1, count + 1):
        yield RayWorker(ray, remote.remote(model, options, moment, content), number, options.parallel)


def _content(path: str) -> Any:
    import numpy as np

    try:
        return np.fromfile(path, np.uint8)
    except OSError as error:
        raise problem("read", path, error) from error


def _usable(workers: Sequence[RayWorker], note: Note) -> list[RayWorker]:
    """Those that can be used, all of which compute the same. Workers for which the cluster has no room yet, or which
    still load the model, are used once they are ready: one that is ready is enough to begin."""
    found: list[RayWorker] = []
    expected: Computation | None = None
    for worker in workers:
        worker.expected = expected
        try:
            worker.wait_ready(None if expected is None else PATIENCE_S)
        except WorkerLost as lost:
            note(f"dropped: {worker.name} {lost.reason}")
            continue
        expected = expected or worker.computation
        found.append(worker)
    if expected is None:
        raise Refused("no worker of the Ray cluster can be used")
    return found


class RayWorker:
    """One actor. `computation` is what it computes with, None until it is ready; `expected` what all compute with."""

    def __init__(self, ray: Any, actor: Any, number: int, width: int) -> None:
        self.name = f"worker {number}"
        self.width = width
        self.computation: Computation | None = None
        self.expected: Computation | None = None
        self._ray = ray
        self._actor = actor
        self._interrupted = threading.Event()

    def wait_ready(self, seconds: float | None) -> None:
        """Waits until the actor has verified its copy, or so many seconds. Raises WorkerLost."""
        state = self._wait(self._actor.ready.remote(), self._interrupted.is_set, seconds)
        if state is not None:
            self._admit(state)

    def _admit(self, state: ActorReady | ActorRefused) -> None:
        """Raises WorkerLost for an actor that was refused, or computes something else than the others."""
        self._require(state)
        assert isinstance(state, ActorReady)
        self.name = f"{self.name.partition(' on ')[0]} on {state.node}"
        if self.expected is not None and (different := self.expected.difference(state.computation)):
            raise WorkerLost(f"does not compute the same as the others: {different}")
        self.computation = state.computation

    def answer(self, request: BatchRequest, cancelled: Callable[[], bool]) -> bytes:
        """Raises WorkerPaused while Ray starts the actor anew, WorkerLost once it does not, or for one that is refused;
        Cancelled."""
        if self.computation is None:
            raise WorkerPaused("is not ready yet: it loads the model, or the cluster has no room for it")
        try:
            found = self._wait(self._actor.answer.remote(request), cancelled)
        except self._ray.exceptions.RayError as error:
            raise WorkerPaused(f"was lost ({type(error).__name__}): Ray starts it anew") from None
        self._require(found)
        line: bytes = found
        return line

    def resume(self, cancelled: Callable[[], bool]) -> None:
        """Waits until the actor is there again. Raises WorkerLost, Cancelled."""
        while True:
            try:
                self._admit(self._wait(self._actor.ready.remote(), cancelled))
                return
            except self._ray.exceptions.ActorUnavailableError:
                if self._interrupted.wait(POLL_S) or cancelled():
                    raise Cancelled from None
            except self._ray.exceptions.RayError as error:
                raise WorkerLost(f"is gone: {type(error).__name__}") from None

    def _wait(self, reference: Any, cancelled: Callable[[], bool], seconds: float | None = None) -> Any:
        waited = 0.0
        while True:
            done, _ = self._ray.wait([reference], timeout=POLL_S)
            if done:
                return self._ray.get(reference)
            waited += POLL_S
            if cancelled():
                raise Cancelled
            if seconds is not None and waited >= seconds:
                return None

    def _require(self, found: Any) -> None:
        if isinstance(found, ActorRefused):
            self.name = f"{self.name.partition(' on ')[0]} on {found.node}"
            raise WorkerLost(found.reason)

    def interrupt(self) -> None:
        self._interrupted.set()

    def close(self) -> None:
        """Ends the actor."""
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)
