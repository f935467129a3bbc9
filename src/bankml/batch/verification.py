"""Verifies the output of a batch: every line belongs to its request, every receipt fits, the digest is that of the
lines, and a random sample of the answers is what the model computes."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bankml.batch.digest import BatchDigest, DigestFile
from bankml.batch.entry import bad_line, read_entry
from bankml.batch.reading import lines_of
from bankml.batch.request import EMBEDDINGS, BadLine, BatchRequest, InputLine, read_line
from bankml.batch.worker import Worker
from bankml.errors import Refused
from bankml.files import open_regular
from bankml.library.residency import Library
from bankml.receipt.check import check
from bankml.receipt.raw import raw_value
from bankml.receipt.replay_record import ReplayRecord
from bankml.replay.replay import read_evidence, replay
from bankml.replay.verdict import NotReplayable
from bankml.transparency.note import NoteVerifier

MOST_SHOWN = 5
"""Problems that a refusal lists."""

OpenReplay = Callable[[ReplayRecord], Library]
"""Opens the model with the arithmetic of a record."""


@dataclass(frozen=True)
class BatchSample:
    """Which lines are computed again: `share` of all (0 to 1), or `count`; at least one, chosen at random."""

    share: float | None = None
    count: int | None = None

    def of(self, lines: int) -> frozenset[int]:
        """The positions that are chosen, from 0."""
        wanted = self.count if self.count is not None else round((self.share or 0) * lines)
        return frozenset(random.SystemRandom().sample(range(lines), min(lines, max(1, wanted))))


@dataclass
class BatchVerdict:
    """What was found: `replayed` answers were computed again by the replay, `recomputed` lines otherwise (embeddings
    and errors)."""

    digest: BatchDigest = field(default_factory=BatchDigest)
    receipts: int = 0
    replayed: int = 0
    recomputed: int = 0
    problems: list[str] = field(default_factory=list)

    def require_none(self) -> None:
        """Raises Refused where there is a problem."""
        if self.problems:
            more = len(self.problems) - MOST_SHOWN
            rest = f"; and {more} more" if more > 0 else ""
            raise Refused("; ".join(self.problems[:MOST_SHOWN]) + rest)


class Verification:
    """Reads input and output side by side, neither of which is in memory as a whole."""

    def __init__(self, open_replay: OpenReplay, open_worker: Callable[[], Worker]) -> None:
        """Both are called once, when the first line needs them."""
        self._open_replay = open_replay
        self._open_worker = open_worker
        self._library: Library | None = None
        self._worker: Worker | None = None

    def run(self, source: str, output: str, sample: frozenset[int], progress: Callable[[int], object]) -> BatchVerdict:
        """Raises FileProblem."""
        verdict = BatchVerdict()
        for position, (line, written) in enumerate(itertools.zip_longest(lines_of(source), _written(output))):
            where = f"line {position + 1} of {output}"
            if line is None or written is None:
                verdict.problems.append(f"{output} has {'more' if line is None else 'fewer'} lines than {source}")
                break
            try:
                verdict.digest.add(entry := read_entry(written))
                if entry.id != line.id:
                    raise Refused(f"belongs to another line than {line.number} of {source}")
                self._check(line, written, position in sample, verdict)
            except (Refused, NotReplayable) as error:
                verdict.problems.append(f"{where} {error}")
            progress(1)
        return verdict

    def _check(self, line: InputLine, written: bytes, chosen: bool, verdict: BatchVerdict) -> None:
        request = read_line(line)
        if isinstance(request, BadLine):
            if bad_line(request) != written:
                raise Refused("is not the error of its request")
            return
        status = json.loads(written)["response"]["status_code"]
        if status == 200:
            body = (raw_value(written.decode("utf-8"), ("response", "body")) or "").encode("utf-8")
            if problems := check(request.body, body).problems:
                raise Refused(f"has a receipt that does not fit: {problems[0]}")
            verdict.receipts += 1
        if not chosen:
            return
        if status == 200 and request.url != EMBEDDINGS:
            self._replay(request, body)
            verdict.replayed += 1
        else:
            self._compute(request, written)
            verdict.recomputed += 1

    def _replay(self, request: BatchRequest, body: bytes) -> None:
        evidence = read_evidence(request.body, body)
        if self._library is None:
            self._library = self._open_replay(evidence.record)
        found = replay(evidence, self._library, resident=copy.copy(self._library.resident))
        if not found.ok:
            raise Refused(f"is not what the model computes: {found.problems[0]}")

    def _compute(self, request: BatchRequest, written: bytes) -> None:
        if self._worker is None:
            self._worker = self._open_worker()
        if self._worker.answer(request, lambda: False) != written:
            raise Refused("is not what the model computes")


def _written(path: str) -> Iterator[bytes]:
    with open_regular(path) as raw, open(raw.fileno(), "rb", closefd=False) as file:
        for line in file:
            yield line.removesuffix(b"\n")


def require_digest(data: bytes, digest: BatchDigest, key: NoteVerifier | None, name: str) -> None:
    """Raises Refused unless the file `name`, whose content `data` is, has the digest, signed by `key` if one is
    given."""
    try:
        DigestFile.of(json.loads(data)).require(digest, key)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name} is not the digest of the output: {error}") from None
