"""Replays a response: checks its receipt, computes its answers again, and compares."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api.reading.plain_input import body_with
from bankml.engine.trace import ComputedSpan, checked_trace
from bankml.errors import BankmlError, Cancelled
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.check import Checked, check
from bankml.receipt.receipt import sha256_hex
from bankml.receipt.replay_record import AnswerRecord, ReplayRecord, read_record
from bankml.replay.difference import first_difference
from bankml.replay.proposals import known_texts
from bankml.replay.rerun import Rerun, call_of, rerun
from bankml.replay.verdict import NotReplayable, ReplayVerdict

WIDTH = 32
"""Tokens of an answer that are computed at once."""

HASHES = ("response_sha256", "message_sha256", "logprobs_sha256")
COUNTS = ("prompt_tokens", "completion_tokens")


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Evidence:
    """A response whose receipt fits it, and the record in the receipt."""

    request: bytes
    checked: Checked
    record: ReplayRecord

    @property
    def receipt(self) -> Mapping[str, Any]:
        assert self.checked.receipt is not None  # it fits
        return self.checked.receipt

    @property
    def model_sha256(self) -> str:
        return str(self.receipt.get("model_sha256"))

    @property
    def layer(self) -> Mapping[str, Any] | None:
        """Name and digest of a derived model's layer."""
        layer = self.receipt.get("layer")
        return layer if isinstance(layer, Mapping) else None


def read_evidence(request: bytes, answer: bytes) -> Evidence:
    """Checks the receipt in `answer`. Raises NotReplayable where it does not fit or does not say how the answer was
    computed."""
    checked = check(request, answer)
    if checked.receipt is None or checked.problems:
        raise NotReplayable("receipt", f"the receipt does not fit: {'; '.join(checked.problems)}")
    if "replay" not in checked.receipt:
        raise NotReplayable("record", "the receipt does not say how the answer was computed")
    try:
        record = read_record(checked.receipt["replay"])
    except ValueError as error:
        raise NotReplayable("record", str(error)) from None
    if any(answer.trace is None for answer in record.answers):
        what = "the places of its keys and values in a sliding window's cache depended on earlier requests"
        raise NotReplayable("trace", f"the answer cannot be replayed: {what}")
    for number, answer_record in enumerate(record.answers):
        spans = [ComputedSpan(*span) for span in answer_record.trace or ()]
        try:
            trace = checked_trace(spans, spans[-1].end if spans else 0)
        except ValueError as error:
            raise NotReplayable("trace", f"replay.answers[{number}].trace: {error}") from None
        if answer_record.cached_tokens > len(trace):
            raise NotReplayable("trace", f"replay.answers[{number}].trace ends before the cached tokens do")
    return Evidence(request, checked, record)


def replay(
    evidence: Evidence,
    library: Library,
    *,
    resident: Resident | None = None,
    width: int = WIDTH,
    cancelled: Callable[[], bool] = _never,
) -> ReplayVerdict:
    """Computes the answers of `evidence` again, `width` tokens at once, with `resident`, or the model of `library` that
    was opened for it (opening.open_for). The resident gets another engine. Raises NotReplayable, Cancelled."""
    record, resident = evidence.record, resident or library.resident
    assert resident is not None  # it was opened with its model
    _check_model(evidence, resident)
    call = call_of(library, record, _body(evidence), evidence.request)
    derived = call.reference.derived
    layer = evidence.layer
    if (None if derived is None else derived.digest) != (None if layer is None else layer.get("sha256")):
        named = "of no derived model" if layer is None else f"of the derived model {layer.get('name')!s:.100}"
        raise NotReplayable("layer", f"the answer is {named}, the request names another one here")
    began = time.monotonic()
    said = evidence.receipt.get("completion_tokens")
    tokens = said if isinstance(said, int) else 0
    try:
        again = rerun(call, resident, record, known_texts(evidence.checked.objects), tokens, width, cancelled)
    except Cancelled:
        raise
    except BankmlError as error:
        raise NotReplayable("request", f"the request is refused here: {error.message}") from error
    seconds = time.monotonic() - began
    return _compared(evidence, again, resident, seconds)


def _body(evidence: Evidence) -> bytes:
    return body_with(evidence.request, evidence.record.fields) if evidence.record.fields else evidence.request


def _check_model(evidence: Evidence, resident: Resident) -> None:
    record, model = evidence.record, resident.provenance.model_sha256
    if evidence.model_sha256 != model:
        raise NotReplayable("model", f"the answer is of a model with the sha256 {evidence.model_sha256}, not {model}")
    if record.arithmetic != resident.arithmetic:
        raise NotReplayable(
            "arithmetic", f"the answer was computed with {record.arithmetic}, not {resident.arithmetic}"
        )
    template = sha256_hex(resident.template.source.encode("utf-8", "surrogatepass"))
    if record.template is not None and record.template.sha256 != template:
        raise NotReplayable("template", f"the chat template was {record.template.sha256}, this model's is {template}")


def _compared(evidence: Evidence, again: Rerun, resident: Resident, seconds: float) -> ReplayVerdict:
    computed = check(evidence.request, again.body)
    assert computed.receipt is not None and not computed.problems  # it was made here
    receipt: Mapping[str, Any] = computed.receipt
    record = read_record(receipt["replay"])
    for number, (said, found) in enumerate(zip(evidence.record.answers, record.answers, strict=True)):
        if said.prompt_sha256 != found.prompt_sha256:
            what = f"the prompt of answer {number} has other tokens here: {found.prompt_sha256}"
            raise NotReplayable("prompt", f"{what}, not {said.prompt_sha256}")
    problems = [
        problem
        for number, (said, found) in enumerate(zip(evidence.record.answers, record.answers, strict=True))
        for problem in _answer_problems(number, said, found)
    ]
    # The texts and probabilities of several answers stand in a stream in the order in which they were computed.
    interleaved = len(record.answers) > 1
    for name in ("message_sha256", *COUNTS) if interleaved else (*HASHES, *COUNTS):
        if evidence.receipt.get(name) != receipt.get(name):
            problems.append(f"{name} is {evidence.receipt.get(name)}, computed is {receipt.get(name)}")
    tokens = int(receipt["completion_tokens"])
    if not problems:
        return ReplayVerdict("equal", tokens=tokens, seconds=seconds)
    one_prompt = len(again.slots) == len(record.answers)
    slots = again.slots if one_prompt else ()
    difference = first_difference(evidence.checked, computed, slots, int(receipt["prompt_tokens"]), resident)
    sentences = [difference.sentence(), *problems] if difference is not None else problems
    return ReplayVerdict("different", tuple(sentences), difference, tokens=tokens, seconds=seconds)


def _answer_problems(number: int, said: AnswerRecord, found: AnswerRecord) -> list[str]:
    names = ("tokens_sha256", "finish_reason", "seed", "cached_tokens", "trace")
    return [
        f"replay.answers[{number}].{name} is {_short(getattr(said, name))}, computed is {_short(getattr(found, name))}"
        for name in names
        if getattr(said, name) != getattr(found, name)
    ]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
