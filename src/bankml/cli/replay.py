"""`bankml replay`: computes an answer again from the model's file, and compares."""

import json
from argparse import Namespace

from bankml.cli.check import read_answer, read_request, require_one_stdin
from bankml.cli.output import about, say
from bankml.cli.verified import fork_of, model_to_open
from bankml.errors import Refused, UsageError
from bankml.library.registry import Registry
from bankml.library.supported import require_supported
from bankml.replay.opening import open_for
from bankml.replay.replay import Evidence, read_evidence
from bankml.replay.replay import replay as compute
from bankml.replay.verdict import NotReplayable, ReplayVerdict


def replay(arguments: Namespace) -> int:
    require_one_stdin(arguments.request, arguments.answer)
    request, answer = read_request(arguments.request), read_answer(arguments.answer)
    try:
        evidence = read_evidence(request, answer)
        verdict = _computed(arguments, evidence)
    except NotReplayable as error:
        verdict = ReplayVerdict("not replayable", (error.message,), precondition=error.name)
    if arguments.json:
        say(json.dumps(verdict.to_json()))
        return 0 if verdict.ok else 2
    if not verdict.ok:
        raise Refused("; ".join(verdict.problems))
    say(f"equal: {verdict.tokens} tokens computed again in {verdict.seconds:.2f} s")
    return 0


def _computed(arguments: Namespace, evidence: Evidence) -> ReplayVerdict:
    file, fork = _file(arguments, evidence)
    with about(file):
        verified = model_to_open(file, fork, require_supported)
        library = open_for(evidence.record, verified, arguments.registry, arguments.threads)
    return compute(evidence, library)


def _file(arguments: Namespace, evidence: Evidence) -> tuple[str, str]:
    """The model's file and its record: --model, or the one that is pinned with the receipt's sha256."""
    if arguments.model is not None:
        return arguments.model, fork_of(arguments.model, arguments.fork)
    if arguments.registry is None:
        raise UsageError("name the model's file with --model, or a folder of records with --registry")
    for pin in Registry(arguments.registry).pins():
        if pin.sha256 == evidence.model_sha256 and pin.path is not None:
            return pin.path, pin.fork
    missing = f"no file with the sha256 {evidence.model_sha256} is pinned in {arguments.registry}, or it is missing"
    raise NotReplayable("model", missing)
