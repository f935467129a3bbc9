"""`bankml serve --spawn | --upstream`: in front of llama-server."""

import os
import threading
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bankml.cli.api_key import api_keys
from bankml.cli.issuer import Receipts
from bankml.cli.origins import allowed_origins
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
"""Seconds for a llama-server that bankML has not started to respond."""


# The modes in which an option has an effect; options that are not listed have one in every mode.
USED_BY = {
    "ctx": ("--native", "--spawn"),
    "threads": ("--native", "--spawn"),
    "reasoning": ("--native", "--spawn"),
    "slot_dir": ("--native", "--spawn"),
    "slots_trust": ("--native",),
    "parallel": ("--native",),
    "queue": ("--native",),
    "registry": ("--native",),
    "keep_alive": ("--native",),
    "any_model": ("--native",),
    "content_special": ("--native",),
    "embeddings": ("--native",),
    "pooling": ("--native",),
    "rerank": ("--native",),
    "ubatch_size": ("--native",),
    "kv_limit": ("--native",),
    "spec_ngram": ("--spawn",),
    "engine_log": ("--spawn",),
    "engine_mmap": ("--spawn",),
    "upstream_timeout": ("--spawn", "--upstream alone"),
}


def check_options(arguments: Namespace) -> None:
    """Raises UsageError for options that exclude each other, and for one that has no effect in the mode."""
    if arguments.native and arguments.spawn is not None:
        raise UsageError("--native and --spawn exclude each other: give one of them")
    if not arguments.native and arguments.spawn is None and arguments.upstream is None:
        raise UsageError(
            "name an engine: --native, --spawn LLAMA_SERVER, or the --upstream HOST:PORT of a llama-server"
        )
    mode = "--native" if arguments.native else "--spawn" if arguments.spawn is not None else "--upstream alone"
    for option, users in USED_BY.items():
        given = getattr(arguments, option)
        if given is not None and given is not False and mode not in users:
            name = "--" + option.replace("_", "-")
            raise UsageError(f"{name} has no effect with {mode}: it is for {' and '.join(users)}")


def run_in_front(
    arguments: Namespace,
    receipts: Receipts,
    verified: "Verified",
    listen: Address,
    engine: Address,
    announce: Callable[[], None],
) -> int:
    """Starts llama-server or connects to it, checks that it serves the verified file, and serves until a signal."""
    from bankml.api.metrics_middleware import MetricsMiddleware
    from bankml.http.limits import Limits
    from bankml.http.server import LISTENING_HOSTS, serve
    from bankml.measure.usage import Watched
    from bankml.upstream.client import Upstream
    from bankml.upstream.proxy import Proxy
    from bankml.upstream.rehash import FileRehash
    from bankml.upstream.verifier import EngineVerifier, require_same_file

    limits = Limits() if arguments.upstream_timeout is None else Limits(engine_silence=arguments.upstream_timeout)
    upstream = Upstream((LISTENING_HOSTS[engine[0]], engine[1]), limits)
    checked = threading.Event()  # before, the end of a spawned engine is raised as an error
    with ExitStack() as stack:
        stack.callback(upstream.close)
        child = _engine(arguments, verified, upstream, stack, lambda words: note(words) if checked.is_set() else None)
        alive: Callable[[], None] = (lambda: None) if child is None else child.alive
        loading: Loading = "unknown" if child is None else "mmap" if arguments.engine_mmap else "memory"
        verifier = EngineVerifier(verified, upstream, alive, loading, FileRehash(verified, _note_change))
        provenance = require_same_file(verifier)
        checked.set()
        alive()  # or it ended in between

        def ready(_: object) -> None:
            note(f"engine: {provenance.engine} at {upstream.shown} serves the verified file")
            announce()
            verifier.rehash.start(upstream.limits.engine_rehash)

        watched = [Watched("gateway", os.getpid()), *([] if child is None else [Watched("engine", child.pid)])]
        measured = MetricsMiddleware(receipts.beside(Proxy(verifier, receipts.issuer)), watched)
        return serve(
            measured,
            listen=listen,
            ready=ready,
            refused=measured.refused,
            at_once=measured.at_once,
            api_keys=api_keys(arguments),
            origins=allowed_origins(arguments),
        )


def _note_change(message: str) -> None:
    note(f"{message}; no response gets a receipt until bankml is started again")


def _engine(
    arguments: Namespace,
    verified: "Verified",
    upstream: "Upstream",
    stack: ExitStack,
    ended: Callable[[str], object],
) -> "Child | None":
    """Waits until the engine is ready. Returns the process that was started here, which `stack` stops, or None.

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
        reasoning=arguments.reasoning or "auto",
    )
    child = stack.enter_context(spawned(spawning, ended))
    note(f"waiting: llama-server (process {child.pid}) loads {verified.name}")
    wait_until_healthy(upstream, READY_WITHIN, child.alive)
    return child
