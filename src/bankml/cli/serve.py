"""`bankml serve | demo`."""

import os
import shlex
from argparse import Namespace
from typing import TYPE_CHECKING, NoReturn

from bankml.cli.api_key import api_keys
from bankml.cli.issuer import Receipts, receipts_of
from bankml.cli.origins import allowed_origins
from bankml.cli.output import about, note, say
from bankml.cli.parser import UPSTREAM
from bankml.cli.proxy import check_options
from bankml.cli.verified import fork_of, model_to_open, verified_model
from bankml.errors import RequestError, UsageError
from bankml.model.limits import DEFAULT_CONTEXT, DEFAULT_QUEUE, MAX_CONTEXT, MAX_THREADS
from bankml.receipt.issuer import UNSIGNED

if TYPE_CHECKING:
    from bankml.gate.verify import Verified
    from bankml.library.load import LoadOptions
    from bankml.model.shape import Pooling

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EMBEDDING_EXAMPLE = '{"input":["Say hello.","Say goodbye."]}'
EXAMPLE = '{"messages":[{"role":"user","content":"Say hello."}],"max_tokens":32}'

MAX_TIMEOUT = 1_000_000  # seconds

Address = tuple[str, int]


def serve(arguments: Namespace) -> int:
    check_options(arguments)
    api_keys(arguments)  # a file that cannot be read is an error before long work
    listen, engine = _checked(arguments)
    fork = fork_of(arguments.file, arguments.fork)
    _require_free(listen, *([engine] if arguments.native else []))
    run = _serve if arguments.native else _serve_in_front
    with receipts_of(arguments) as receipts:
        return run(arguments, receipts, arguments.file, fork, listen, engine)


def demo(arguments: Namespace) -> int:
    from bankml.convert.demo import default_folder, prepare

    listen, engine = _checked(arguments)
    _keep_alive(arguments.keep_alive)  # before anything is fetched; the registry may be the folder that is made now
    if not arguments.no_serve:
        _require_free(listen, engine)
    model, fork = prepare(arguments.dir or default_folder(), note)
    if arguments.no_serve:
        verified_model(str(model), str(fork))
        say(f"{model} is ready: bankml serve {shlex.quote(str(model))} --native")
        return 0
    return _serve(arguments, Receipts(UNSIGNED), str(model), str(fork), listen, engine)


def _serve(arguments: Namespace, receipts: Receipts, file: str, fork: str, listen: Address, engine: Address) -> int:
    """Verifies the model, prints what is served and an example request, and serves until a signal."""
    registry, keep_alive = _registry(arguments.registry), _keep_alive(arguments.keep_alive)
    pooling = _pooling(arguments)

    from bankml.engine.memory import keep_heaps_small
    from bankml.library.supported import names_pooling, require_supported

    keep_heaps_small()
    verified = model_to_open(file, fork, require_supported)

    from bankml.api.metrics_middleware import MetricsMiddleware
    from bankml.api.routes import Serving, build_application
    from bankml.http.server import serve as run
    from bankml.measure.usage import Watched
    from bankml.replay.route import PATH as REPLAY
    from bankml.replay.route import handle as replay

    with about(file):
        application = build_application(
            verified,
            _load_options(arguments, pooling),
            Serving(
                slot_dir=arguments.slot_dir,
                slots_trust=arguments.slots_trust,
                registry=registry,
                any_model=arguments.any_model,
                keep_alive=keep_alive,
                queue_limit=arguments.queue or DEFAULT_QUEUE,
                engine_address=shown_address(engine),
                issuer=receipts.issuer,
            ),
            {REPLAY: {"POST": replay}},
        )

    note(f"parallel: {application.parallel} at once, --queue {arguments.queue or DEFAULT_QUEUE} more waiting")
    if registry is not None:
        _print_problems(registry, verified)
    measured = MetricsMiddleware(receipts.beside(application), [Watched("gateway", os.getpid())])
    code: int = run(
        measured,
        listen=listen,
        engine=engine,
        ready=lambda _: _announce(verified, listen, engine, names_pooling(verified.header)),
        refused=measured.refused,
        at_once=measured.at_once,
        api_keys=api_keys(arguments),
        origins=allowed_origins(arguments),
    )
    return code


def _load_options(arguments: Namespace, pooling: "Pooling | None") -> "LoadOptions":
    from bankml.library.load import LoadOptions

    return LoadOptions(
        arguments.ctx,
        arguments.threads,
        reasoning=arguments.reasoning != "off",
        content_special=arguments.content_special or "parse",
        parallel=arguments.parallel,
        kv_limit=None if arguments.kv_limit is None else arguments.kv_limit << 20,
        embeddings=arguments.embeddings or arguments.rerank,
        pooling=pooling,
        longest=arguments.ubatch_size,
    )


def _pooling(arguments: Namespace) -> "Pooling | None":
    """--reranking is --pooling rank; as in llama-server a pooling alone does not make every model serve embeddings."""
    if arguments.rerank and arguments.pooling not in (None, "rank"):
        raise UsageError(f"--reranking is --pooling rank, not {arguments.pooling}: give one of them")
    pooling: Pooling | None = "rank" if arguments.rerank else arguments.pooling
    return pooling


def _registry(given: str | None) -> str | None:
    """The folder of --registry, the default folder where it has no value; None without the option."""
    from bankml.library.registry import default_folder

    if given == "":
        return default_folder()
    if given is not None and not os.path.isdir(given):
        raise UsageError(f"--registry {given} is not a folder")
    return given


def _print_problems(registry: str, verified: "Verified") -> None:
    """Prints a line for everything in the registry's folder that is not available as a model."""
    from bankml.library.reference import PinnedFile
    from bankml.library.registry import Registry

    for problem in Registry(registry, PinnedFile.of(verified)).problems():
        note(f"skipped: {problem.file}: {problem.reason}")


def _keep_alive(given: str | None) -> float:
    """The seconds of --keep-alive."""
    from bankml.api.ollama.durations import KEEP_ALIVE, keep_alive_option

    try:
        return KEEP_ALIVE if given is None else keep_alive_option(given)
    except RequestError as error:
        raise UsageError(error.message.replace("Field '--keep-alive'", "--keep-alive", 1)) from None


def _serve_in_front(
    arguments: Namespace, receipts: Receipts, file: str, fork: str, listen: Address, engine: Address
) -> int:
    """The same, in front of llama-server."""
    from bankml.cli.proxy import run_in_front

    verified = verified_model(file, fork)
    return run_in_front(arguments, receipts, verified, listen, engine, lambda: _announce(verified, listen, engine))


def _announce(verified: "Verified", listen: Address, engine: Address, embeds: bool = False) -> None:
    here = shown_address(listen)
    note(f"verified: {verified.name}: guard {verified.verdict.kind}, sha256 {verified.sha256} as pinned")
    others = f"page: http://{here}/bankml/ui; llama-server's endpoints: http://{shown_address(engine)}"
    note(f"listening: http://{here} ({others})")
    path, example = ("embeddings", EMBEDDING_EXAMPLE) if embeds else ("chat/completions", EXAMPLE)
    note(f"ask: curl -s http://{here}/v1/{path} -H 'Content-Type: application/json' -d '{example}'")


def _checked(arguments: Namespace) -> tuple[Address, Address]:
    """The two addresses, after the numbers of the command line were checked."""
    if arguments.ctx is None:  # only now: `check_options` looks at whether it was given
        arguments.ctx = DEFAULT_CONTEXT
    _in_range("--ctx", arguments.ctx, MAX_CONTEXT)
    if arguments.threads is not None:
        _in_range("--threads", arguments.threads, MAX_THREADS)
    if getattr(arguments, "upstream_timeout", None) is not None:
        _in_range("--upstream-timeout", arguments.upstream_timeout, MAX_TIMEOUT)
    allowed_origins(arguments)
    listen = parse_address("--listen", arguments.listen)
    engine = parse_address("--upstream", arguments.upstream or UPSTREAM)
    if arguments.slot_dir is not None and not os.path.isdir(arguments.slot_dir):
        raise UsageError(f"--slot-dir {arguments.slot_dir} is not a folder")
    if _same(listen, engine):
        raise UsageError(f"--listen and --upstream are both {shown_address(engine)}: give them different ports")
    return listen, engine


def _require_free(*addresses: Address) -> None:
    """Raises UsageError for an address in use, before the file is hashed and an engine loads."""
    from bankml.http.server import require_free

    require_free(*addresses)


def _same(one: Address, other: Address) -> bool:
    """Whether both are the same address: localhost is 127.0.0.1."""
    first, second = ((host.replace("localhost", "127.0.0.1"), port) for host, port in (one, other))
    return first == second


def _in_range(option: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise UsageError(f"{option} {value} is out of range: 1 to {most}")


def parse_address(option: str, text: str) -> Address:
    """HOST:PORT as a pair; the host without its brackets. Raises UsageError unless it is loopback."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or not host:
        _not_address(option, text)
    if not colon or not port.isascii() or not port.isdigit() or not 1 <= int(port[:6]) <= 65535 or len(port) > 5:
        _not_address(option, text)
    if host not in LOOPBACK:
        raise UsageError(f"{option} {text} is not loopback: the host must be 127.0.0.1, localhost or [::1]")
    return host, int(port)


def _not_address(option: str, text: str) -> NoReturn:
    raise UsageError(f"{option} {text} is not HOST:PORT with a port from 1 to 65535")


def shown_address(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
