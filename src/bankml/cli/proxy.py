"""`bankml serve --spawn | --upstream`: in front of llama-server."""

import os
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bankml.cli.output import note
from bankml.errors import UsageError

if TYPE_CHECKING:
    from bankml.gate.verify import Verified
    from bankml.gateway.upstream import Upstream

Address = tuple[str, int]

THREADS = 3
UPSTREAM_WITHIN = 10.0
"""Seconds for a llama-server that was started by someone else to answer."""


def check_options(arguments: Namespace) -> None:
    """Raises UsageError for options that do not go together."""
    if arguments.native and arguments.spawn is not None:
        raise UsageError("--native and --spawn are two ways to answer: give one of them")
    if not arguments.native and arguments.spawn is None and arguments.upstream is None:
        raise UsageError("say what answers: --native, --spawn LLAMA_SERVER, or --upstream HOST:PORT of a running one")
    for option in ("registry", "keep_alive"):
        if not arguments.native and getattr(arguments, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} goes with --native: llama-server plays the one file")
    if arguments.spawn is None:
        options = ("spec_ngram", "engine_log") if arguments.native else ("spec_ngram", "engine_log", "slot_dir")
        for option in options:
            if getattr(arguments, option):
                name = "--" + option.replace("_", "-")
                raise UsageError(f"{name} is for the llama-server that --spawn starts: give --spawn with it")
        if not arguments.native and arguments.threads is not None:
            raise UsageError("--threads is for an engine that is started here: the running one has its own")


def run_in_front(
    arguments: Namespace, verified: "Verified", listen: Address, engine: Address, announce: Callable[[], None]
) -> int:
    """Starts llama-server or finds it, checks that it serves the verified file, and serves until a signal ends it."""
    from bankml.gateway.limits import Limits
    from bankml.gateway.proxy import Proxy
    from bankml.gateway.server import LISTENING_HOSTS, serve
    from bankml.gateway.upstream import Upstream
    from bankml.gateway.vouch import Vouch, require_same_file

    upstream = Upstream((LISTENING_HOSTS[engine[0]], engine[1]), Limits())
    with ExitStack() as stack:
        stack.callback(upstream.close)
        alive = _engine(arguments, verified, upstream, stack)
        vouch = Vouch(verified, upstream, alive)
        provenance = require_same_file(vouch)

        def ready(_: object) -> None:
            note(f"engine: {provenance.engine} at {upstream.shown} serves the verified file")
            announce()

        return serve(Proxy(vouch), listen=listen, ready=ready)


def _engine(arguments: Namespace, verified: "Verified", upstream: "Upstream", stack: ExitStack) -> Callable[[], None]:
    """An engine that is ready, stopped by `stack` if started here. Gives what raises once it is known to have ended."""
    from bankml.gateway.spawn import READY_WITHIN, Spawning, refuse_if_answering, spawned
    from bankml.gateway.vouch import wait_until_healthy

    if arguments.spawn is None:
        wait_until_healthy(upstream, UPSTREAM_WITHIN, lambda: None)
        return lambda: None
    refuse_if_answering(upstream.address, upstream.shown)
    spawning = Spawning(
        program=arguments.spawn,
        model=verified.path,
        address=upstream.address,
        threads=arguments.threads or THREADS,
        n_ctx=arguments.ctx,
        spec_ngram=arguments.spec_ngram,
        slot_dir=None if arguments.slot_dir is None else os.path.realpath(arguments.slot_dir),
        log=arguments.engine_log,
    )
    child = stack.enter_context(spawned(spawning, note))
    note(f"waiting: llama-server (process {child.pid}) loads {verified.name}")
    wait_until_healthy(upstream, READY_WITHIN, child.alive)
    return child.alive
