"""One line of a batch's output: OpenAI's form `{"id", "custom_id", "response", "error"}`.

Nothing in it depends on when, where or beside what its request was computed, so that two runs give the same bytes: ids
are derived from the line, there are no times, and the counts are those of an empty cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bankml.batch.computation import Computation
from bankml.batch.request import BadLine, BatchRequest
from bankml.errors import Refused
from bankml.http.json_out import json_bytes
from bankml.receipt.canonical import canonical_json
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.raw import raw_value
from bankml.receipt.receipt import sha256_hex

Json = dict[str, Any]

INVALID = "invalid_line"
"""The code of the error of a line that is no request."""

TIMES = ("timings", "__verbose")
SIGNED = ("signed_at", "expires_at", "key_id", "signature", "log")
"""Members of a receipt about who issued it and when; a batch has one signature, of its digest."""


@dataclass(frozen=True)
class Entry:
    """What the digest and a resumed run need of a line of the output: the ids, the hashes of the request and of the
    response (of the error, where there is none) as they stand in the line, and whether it is an error. `moment` is what
    the template saw as the present, `computation` what the answer was computed with, both by its receipt."""

    id: str
    custom_id: str | None
    request_sha256: str
    response_sha256: str
    failed: bool
    moment: float = 0.0
    computation: Computation | None = None

    @property
    def leaf(self) -> bytes:
        """The entry of the digest's Merkle tree."""
        names = ("custom_id", "request_sha256", "response_sha256")
        return canonical_json({name: getattr(self, name) for name in names})


def answer_line(request: BatchRequest, status: int, body: Mapping[str, Any], moment: float | None = None) -> bytes:
    """The line of a request that was answered with `status` and `body`, without its end. `moment` is what the receipt
    says that its template saw as the present; None: as it says."""
    normal = normal_answer(body, request.id, moment) if status == 200 else dict(body)
    return json_bytes(
        {
            "id": request.id,
            "custom_id": request.custom_id,
            "response": {"status_code": status, "request_id": request.request_sha256, "body": normal},
            "error": None if status == 200 else _error(request.number, body),
        }
    )


def bad_line(line: BadLine) -> bytes:
    """The line of a line that is no request."""
    error = {"code": INVALID, "message": f"line {line.number}: {line.message}", "line": line.number}
    error["request_sha256"] = line.request_sha256
    return json_bytes({"id": line.id, "custom_id": line.custom_id, "response": None, "error": error})


def _error(number: int, body: Mapping[str, Any]) -> Json:
    found = body.get("error")
    error = found if isinstance(found, Mapping) else {}
    return {"code": error.get("type", "error"), "message": f"line {number}: {error.get('message')}", "line": number}


def normal_answer(body: Mapping[str, Any], line_id: str, moment: float | None) -> Json:
    """The body of a response as a function of its request and the model."""
    normal = {name: value for name, value in body.items() if name not in TIMES}
    if isinstance(normal.get("id"), str):
        normal["id"] = f"chatcmpl-{line_id.rpartition('_')[2]}"
    if "created" in normal:
        normal["created"] = 0
    usage = normal.get("usage")
    if isinstance(usage, Mapping) and "prompt_tokens_details" in usage:
        normal["usage"] = {**usage, "prompt_tokens_details": {"cached_tokens": 0}}
    receipt = normal.get(RECEIPT_KEY)
    if isinstance(receipt, Mapping):
        normal[RECEIPT_KEY] = normal_receipt(receipt, moment)
    return normal


def normal_receipt(receipt: Mapping[str, Any], moment: float | None) -> Json:
    """A receipt without times, signature and place in a log."""
    normal = {name: value for name, value in receipt.items() if name not in SIGNED}
    normal |= {"ttft_ms": None, "wall_ms": None, "signed": False}
    replay = normal.get("replay")
    if isinstance(replay, Mapping):
        answers: Sequence[Mapping[str, Any]] = replay["answers"]
        normal["replay"] = {**replay, "answers": [{**one, "cached_tokens": 0} for one in answers]}
        if "template" in replay and moment is not None:
            normal["replay"]["template"] = {**replay["template"], "rendered_at": moment}
    return normal


def read_entry(line: bytes) -> Entry:
    """What a line of the output has. Raises Refused, with the end of a sentence, for what is none."""
    try:
        text = line.decode("utf-8")
        found = json.loads(text)
        return _entry(text, found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused("is not a line of a batch's output") from None


def _entry(text: str, found: Json) -> Entry:
    response, error = found["response"], found["error"]
    if response is None:
        raw, request_sha256 = raw_value(text, ("error",)), error["request_sha256"]
        return Entry(found["id"], found["custom_id"], request_sha256, _hash(raw), True)
    raw, status = raw_value(text, ("response", "body")), response["status_code"]
    receipt = response["body"].get(RECEIPT_KEY) or {}
    replay = receipt.get("replay") or {}
    template = replay.get("template") or {}
    return Entry(
        found["id"],
        found["custom_id"],
        response["request_id"],
        _hash(raw),
        status != 200,
        template.get("rendered_at", 0.0),
        Computation.of_receipt(receipt) if receipt else None,
    )


def _hash(raw: str | None) -> str:
    return sha256_hex((raw or "").encode("utf-8"))
