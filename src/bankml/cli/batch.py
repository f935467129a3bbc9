"""`bankml batch`: the requests of a file, answered into another."""

import json
import os
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from bankml.batch.digest import BatchDigest
from bankml.batch.output import DIGEST, BatchOutput, locked_output
from bankml.batch.reading import count, lines_of, sha256_of
from bankml.batch.request import BatchRequest, read_line
from bankml.batch.run import BatchRun, Resumed, resume, unfinished
from bankml.batch.worker import Worker
from bankml.cli.batch_options import SAMPLE
from bankml.cli.batch_progress import batch_progress
from bankml.cli.issuer import signing_key
from bankml.cli.output import about, note, say
from bankml.cli.verified import fork_of, model_to_open
from bankml.errors import Refused, UsageError
from bankml.files import atomic_write
from bankml.library.load import LoadOptions, parallel_of
from bankml.library.registry import Registry
from bankml.library.supported import require_supported

if TYPE_CHECKING:
    from bankml.batch.local import LocalWorker

API_KEY = "BANKML_API_KEY"
"""The environment variable of the key that servers require."""

SERVER_WIDTH = 8
"""Requests that a server has at once, unless --parallel says otherwise."""

RAY_WIDTH = 4
"""Requests that a worker of a cluster has at once."""


def batch(arguments: Namespace) -> int:
    if arguments.verify is not None:
        return _verify(arguments)
    _check(arguments)
    key = None
    if arguments.sign_key is not None:  # what is wrong with it is known before anything is computed
        key = signing_key(arguments.sign_key, arguments.sign_passphrase_file)
    total = count(arguments.input)
    with locked_output(arguments.output) as output:
        resumed = resume(arguments.input, output)
        if resumed.lines:
            note(f"resumed: {resumed.lines} of {total} requests are in {arguments.output}")
        if unfinished(resumed):
            _compute(arguments, output, resumed, total)
        output.complete()
        digest = resumed.digest
        _require_one_model(arguments, digest)
        found = digest.to_json(sha256_of(arguments.input), key)
        with atomic_write(arguments.output + DIGEST) as file:
            file.write((json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())
    say(f"digest: {digest.root.hex()} over {digest.size} requests, models {', '.join(digest.models) or 'none'}")
    if digest.errors:
        raise Refused(f"{digest.errors} of {digest.size} requests have an error in {arguments.output}")
    return 0


def _verify(arguments: Namespace) -> int:
    from bankml.cli.batch_verify import verify

    for option in ("output", "registry", "server", "ray", "sign_key"):
        if getattr(arguments, option):
            raise UsageError(f"--{option.replace('_', '-')} has no effect with --verify")
    if arguments.model is None:
        raise UsageError("name the model's file with --model: --verify computes answers again")
    return verify(arguments, lambda: _opened(arguments, 0.0))


def _check(arguments: Namespace) -> None:
    if arguments.sample != SAMPLE:
        raise UsageError("--sample has no effect without --verify")
    if arguments.key is not None and not arguments.server:
        raise UsageError("--key has no effect without --server or --verify")
    if arguments.output is None:
        raise UsageError("name the file of the answers with -o")
    if arguments.server:
        _check_servers(arguments)
    elif arguments.ray is not None:
        _check_ray(arguments)
    elif arguments.model is None and arguments.registry is None:
        raise UsageError("name the model's file with --model, a folder of records with --registry, or a --server")
    if arguments.sign_passphrase_file is not None and arguments.sign_key is None:
        raise UsageError("--sign-passphrase-file has no effect without --sign-key")


def _check_servers(arguments: Namespace) -> None:
    for option in ("registry", "any_model", "threads", "embeddings", "pooling", "reasoning", "content_special"):
        if getattr(arguments, option):
            raise UsageError(f"--{option.replace('_', '-')} has no effect with --server: it is an option of serve")


def _check_ray(arguments: Namespace) -> None:
    from bankml.batch.cluster import require_ray

    for option in ("registry", "any_model"):
        if getattr(arguments, option):
            raise UsageError(f"--{option.replace('_', '-')} has no effect with --ray: a cluster answers with one model")
    if arguments.model is None:
        raise UsageError("name the model's file with --model: --ray verifies it on every node")
    require_ray()


def _compute(arguments: Namespace, output: BatchOutput, resumed: Resumed, total: int) -> None:
    moment = resumed.moment or float(int(time.time()))
    with _workers(arguments, resumed, moment) as workers:
        run = BatchRun(resumed, output, workers, note)
        with batch_progress(resumed.lines, total, arguments.quiet) as progress:
            run.run(progress)


@contextmanager
def _workers(arguments: Namespace, resumed: Resumed, moment: float) -> Iterator[Sequence[Worker]]:
    if arguments.server:
        yield _server_workers(arguments, resumed)
        return
    if arguments.ray is not None:
        with _ray_workers(arguments, resumed, moment) as workers:
            yield workers
        return
    with closing(_local_worker(arguments, resumed, moment)) as worker:
        yield [worker]


def _server_workers(arguments: Namespace, resumed: Resumed) -> Sequence[Worker]:
    from bankml.batch.http_client import ServerClient
    from bankml.batch.servers import ServerWorker, connected
    from bankml.signing.keys import PublicKey

    pinned = None if arguments.model is None else _pin(arguments)
    key = None if arguments.key is None else PublicKey.read(arguments.key)
    width = arguments.parallel or SERVER_WIDTH
    clients = [ServerClient(url, os.environ.get(API_KEY)) for url in dict.fromkeys(arguments.server)]
    workers = connected([ServerWorker(client, width, pinned, key) for client in clients], note)
    serves = workers[0].serves
    if serves is not None:
        resumed.require_same(serves.computation)
    return workers


def _pin(arguments: Namespace) -> str:
    """The sha256 that the model is pinned to; the file itself may be elsewhere."""
    from bankml.gate.fork import check_pin, read_fork

    fork = arguments.fork or f"{arguments.model}.FORK.json"
    return check_pin(read_fork(fork), os.path.basename(arguments.model))


@contextmanager
def _ray_workers(arguments: Namespace, resumed: Resumed, moment: float) -> Iterator[Sequence[Worker]]:
    from bankml.batch.cluster import ClusterOptions, ray_workers
    from bankml.batch.model_copy import CopyOptions, ModelCopy

    path = os.path.abspath(arguments.model)
    model = ModelCopy(os.path.basename(path), _pin(arguments), path, arguments.ray_ship)
    options = CopyOptions(
        arguments.ctx,
        arguments.threads or 0,
        arguments.parallel or RAY_WIDTH,
        arguments.embeddings,
        arguments.pooling,
        arguments.reasoning != "off",
        arguments.content_special or "parse",
        {name: value for name, value in os.environ.items() if name.startswith("BANKML_")},
    )
    cluster = ClusterOptions(arguments.ray or None, arguments.ray_workers, arguments.ray_cpus)
    with ray_workers(model, options, cluster, moment, note) as workers:
        for worker in workers:
            if worker.computation is not None:
                resumed.require_same(worker.computation)
        yield workers


def _local_worker(arguments: Namespace, resumed: Resumed, moment: float) -> Worker:
    worker = _opened(arguments, moment)
    if arguments.registry is None:
        resumed.require_same(worker.computation)
    return worker


def _opened(arguments: Namespace, moment: float) -> "LocalWorker":
    from dataclasses import replace

    from bankml.batch.local import LocalWorker, batch_library
    from bankml.engine.memory import keep_heaps_small

    keep_heaps_small()
    file, fork = _startup(arguments)
    verified = model_to_open(file, fork, require_supported)
    options = LoadOptions(
        arguments.ctx,
        arguments.threads,
        parallel=arguments.parallel,
        embeddings=arguments.embeddings,
        pooling=arguments.pooling,
        reasoning=arguments.reasoning != "off",
        content_special=arguments.content_special or "parse",
    )
    with about(file):
        options = replace(options, parallel=parallel_of(verified.header, options))
        return LocalWorker(batch_library(verified, options, moment, arguments.registry, arguments.any_model))


def _startup(arguments: Namespace) -> tuple[str, str]:
    """The file that is loaded first, and its record: --model, or what the first request names in the registry."""
    if arguments.model is not None:
        return arguments.model, fork_of(arguments.model, arguments.fork)
    known = Registry(arguments.registry)
    for line in lines_of(arguments.input):
        request = read_line(line)
        name = json.loads(request.body).get("model") if isinstance(request, BatchRequest) else None
        if isinstance(name, str):
            source = known.resolve(name).source
            if source.path is None:
                raise Refused(f"{source.file} is pinned, but the file is missing: refused")
            return source.path, source.fork
    raise UsageError("no request names a model: name the file with --model")


def _require_one_model(arguments: Namespace, digest: BatchDigest) -> None:
    """Without a registry all answers are of one model."""
    if arguments.registry is None and len(digest.models) > 1:
        names = ", ".join(digest.models)
        raise Refused(f"{arguments.output} has answers of several models ({names}): remove it, and run the batch again")
