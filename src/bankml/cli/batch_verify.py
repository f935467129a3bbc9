"""`bankml batch --verify`: the output of a batch checked against its input, and a sample of it computed again."""

import re
from argparse import Namespace
from collections.abc import Callable

from bankml.batch.local import LocalWorker
from bankml.batch.output import DIGEST
from bankml.batch.reading import count
from bankml.batch.verification import BatchSample, Verification, require_digest
from bankml.batch.worker import Worker
from bankml.cli.batch_progress import batch_progress
from bankml.cli.output import about, say
from bankml.cli.verified import fork_of, model_to_open
from bankml.errors import UsageError
from bankml.files import open_regular
from bankml.library.residency import Library
from bankml.library.supported import require_supported
from bankml.receipt.replay_record import ReplayRecord
from bankml.replay.opening import open_for

SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)%", re.ASCII)
MOST_DIGEST = 1 << 20


def verify(arguments: Namespace, open_local: Callable[[], LocalWorker]) -> int:
    """`open_local` opens a worker with the options of the command line."""
    from bankml.signing.keys import PublicKey

    sample = sample_of(arguments.sample)
    key = None if arguments.key is None else PublicKey.read(arguments.key)
    fork = fork_of(arguments.model, arguments.fork)
    total = count(arguments.input)

    def open_replay(record: ReplayRecord) -> Library:
        with about(arguments.model):
            verified = model_to_open(arguments.model, fork, require_supported)
            return open_for(record, verified, threads=arguments.threads)

    def open_worker() -> Worker:
        return open_local()

    with batch_progress(0, total, arguments.quiet) as progress:
        verification = Verification(open_replay, open_worker)
        verdict = verification.run(arguments.input, arguments.verify, sample.of(total), progress)
    verdict.require_none()
    name = arguments.verify + DIGEST
    with open_regular(name) as file:
        require_digest(file.read(MOST_DIGEST) or b"", verdict.digest, key, name)
    again = f"{verdict.replayed} answers replayed, {verdict.recomputed} lines computed again"
    signed = "" if key is None else f"; the digest is signed by the key {key.key_id}"
    say(f"verified: {verdict.digest.size} lines, {verdict.receipts} receipts fit, {again}{signed}")
    return 0


def sample_of(text: str) -> BatchSample:
    """Raises UsageError for what is neither a share like 1% nor a number."""
    if found := SHARE.fullmatch(text):
        share = float(found[1]) / 100
        if 0 < share <= 1:
            return BatchSample(share=share)
    elif text.isascii() and text.isdigit() and int(text) > 0:
        return BatchSample(count=int(text))
    raise UsageError(f"--sample {text} is neither a share from 0% to 100% nor a number of lines from 1")
