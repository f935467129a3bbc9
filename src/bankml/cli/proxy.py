"""`bankml serve --spawn | --upstream`: in front of llama-server."""

import os
import threading
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bankml.cli.output import note
from bankml.errors import UsageError

if TYPE_CHECKING:
    from bankml.gate.verify import Verified
    from bankml.upstream.client import Upstream
    from bankml.upstream.spawn import Child
    from bankml.upstream.status import Loading

Address = tuple[str, int]

THREADS = 3
UPSTREAM_WITHIN = 10.0
"""Seconds for a llama-server that was started by someone else to answer."""


# Who has a use for the options that some mode has none for; all other options are every mode's.
USED_BY = {
    "ctx": ("--native", "--spawn"),
    "threads": ("--native", "--spawn"),
    "slot_dir": ("--native", "--spawn"),
    "registry": ("--native",),
    "keep_alive": ("--native",),
    "spec_ngram": ("--spawn",),
    "engine_log": ("--spawn",),
    "engine_mmap": ("--spawn",),
}


def check_options(arguments: Namespace) -> None:
    """Raises UsageError for options that do not go together, and for one that would have no effect."""
    if arguments.native and arguments.spawn is not None:
        raise UsageError("--native and --spawn are two ways to answer: give one of them")
    if not arguments.native and arguments.spawn is None and arguments.upstream is None:
        raise UsageError("say what answers: --native, --spawn LLAMA_SERVER, or --upstream HOST:PORT of a running one")
    mode = "--native" if arguments.native else "--spawn" if arguments.spawn is not None else "--upstream alone"
    for option, users in USED_BY.items():
        given = getattr(arguments, option)
        if given is not None and given is not False and mode not in users:
            name = "--" + option.replace("_", "-")
            raise UsageError(f"{name} has no effect with {mode}: it is for {' and '.join(users)}")


def run_in_front(
    arguments: Namespace, verified: "Verified", listen: Address, engine: Address, announce: Callable[[], None]
) -> int:
    """Starts llama-server or finds it, checks that it serves the verified file, and serves until a signal ends it."""
    from bankml.api.metrics_middleware import MetricsMiddleware
    from bankml.http.limits import Limits
    from bankml.http.server import LISTENING_HOSTS, serve
    from bankml.measure.usage import Watched
    from bankml.upstream.client import Upstream
    from bankml.upstream.proxy import Proxy
    from bankml.upstream.rehash import FileRehash
    from bankml.upstream.verifier import EngineVerifier, require_same_file

    upstream = Upstream((LISTENING_HOSTS[engine[0]], engine[1]), Limits())
    vouched = threading.Event()  # until then the end of a spawned engine is an error, which is told as one
    with ExitStack() as stack:
        stack.callback(upstream.close)
        child = _engine(arguments, verified, upstream, stack, lambda words: note(words) if vouched.is_set() else None)
        alive: Callable[[], None] = (lambda: None) if child is None else child.alive
        loading: Loading = "unknown" if child is None else "mmap" if arguments.engine_mmap else "memory"
        vouch = EngineVerifier(verified, upstream, alive, loading, FileRehash(verified, _note_change))
        provenance = require_same_file(vouch)
        vouched.set()
        alive()  # or it ended in between

        def ready(_: object) -> None:
            note(f"engine: {provenance.engine} at {upstream.shown} serves the verified file")
            announce()
            vouch.rehash.start(upstream.limits.engine_rehash)

        watched = [Watched("gateway", os.getpid()), *([] if child is None else [Watched("engine", child.pid)])]
        measured = MetricsMiddleware(Proxy(vouch), watched)
        return serve(measured, listen=listen, ready=ready, refused=measured.refused, at_once=measured.at_once)


def _note_change(message: str) -> None:
    note(f"{message}; no response gets a receipt until bankml is started again")


def _engine(
    arguments: Namespace,
    verified: "Verified",
    upstream: "Upstream",
    stack: ExitStack,
    ended: Callable[[str], object],
) -> "Child | None":
    """Returns when the engine is ready. Gives the process that was started here, which `stack` stops; None if none.

    `ended` is called when that process ends without having been stopped.
    """
    from bankml.upstream.spawn import READY_WITHIN, SpawnOptions, refuse_if_answering, spawned
    from bankml.upstream.verifier import wait_until_healthy

    if arguments.spawn is None:
        wait_until_healthy(upstream, UPSTREAM_WITHIN, lambda: None)
        return None
    refuse_if_answering(upstream.address, upstream.shown)
    spawning = SpawnOptions(
        program=arguments.spawn,
        model=verified.path,
        address=upstream.address,
        threads=arguments.threads or THREADS,
        n_ctx=arguments.ctx,
        spec_ngram=arguments.spec_ngram,
        slot_dir=None if arguments.slot_dir is None else os.path.realpath(arguments.slot_dir),
        log=arguments.engine_log,
        mmap=arguments.engine_mmap,
    )
    child = stack.enter_context(spawned(spawning, ended))
    note(f"waiting: llama-server (process {child.pid}) loads {verified.name}")
    wait_until_healthy(upstream, READY_WITHIN, child.alive)
    return child
