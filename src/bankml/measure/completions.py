"""What is known of each completion: the last 256 of them, and the sum of all."""

import threading
from collections import deque
from dataclasses import dataclass, fields, replace

RING = 256


@dataclass(frozen=True)
class Record:
    """One completion. What was not measured is None.

    `time` is when it ended, in seconds since the epoch. `prompt_ms` goes from the start of computing to the first token,
    `eval_ms` from there to the last, `ttft_ms` from the request's first byte to the first token, waiting in line
    included. `grammar_ms` and `resampled` (tokens that were drawn again) are those of a completion that was held to a
    grammar. `energy_j` is what the processor's packages used meanwhile, whoever used it.
    """

    time: float
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    prompt_ms: float | None = None
    ttft_ms: float | None = None
    eval_ms: float | None = None
    finish: str | None = None
    grammar_ms: float | None = None
    resampled: int | None = None
    energy_j: float | None = None
    request_sha256: str | None = None
    response_sha256: str | None = None

    @property
    def prompt_per_second(self) -> float | None:
        """Prompt tokens computed, those in the cache left out."""
        return rate(self.prompt_tokens - self.cached_tokens, self.prompt_ms)

    @property
    def predicted_per_second(self) -> float | None:
        """Forward passes after the prompt's: one fewer than the tokens, since the first came with the prompt."""
        return rate(self.completion_tokens - 1, self.eval_ms)

    def as_json(self) -> dict[str, object]:
        return vars(self) | {
            "prompt_per_second": self.prompt_per_second,
            "predicted_per_second": self.predicted_per_second,
        }


@dataclass(frozen=True)
class Totals:
    """Sums over all completions since the start. A sum of what was never measured is None."""

    completions: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    prompt_ms: float | None = None
    eval_ms: float | None = None
    grammar_ms: float | None = None
    resampled: int | None = None
    energy_j: float | None = None

    def plus(self, record: Record) -> "Totals":
        sums = {
            field.name: _sum(getattr(self, field.name), getattr(record, field.name))
            for field in fields(self)
            if field.name != "completions"
        }
        return replace(self, completions=self.completions + 1, **sums)


def rate(count: int, ms: float | None) -> float | None:
    """`count` in a second; None when it or the time is none."""
    return count * 1000 / ms if count > 0 and ms is not None and ms > 0 else None


def _sum(before: float | None, more: float | None) -> float | None:
    return before if more is None else more + (before or 0)


class Completions:
    """The ring and the totals. Any thread may record, and any look."""

    def __init__(self, kept: int = RING) -> None:
        self._guard = threading.Lock()
        self._ring: deque[Record] = deque(maxlen=kept)
        self._totals = Totals()

    def record(self, record: Record) -> None:
        with self._guard:
            self._ring.append(record)
            self._totals = self._totals.plus(record)

    def as_json(self) -> dict[str, object]:
        """As `GET /bankml/metrics` gives it, the newest completion last."""
        with self._guard:
            records, totals = tuple(self._ring), self._totals
        return {
            "ring": self._ring.maxlen,
            "totals": dict(vars(totals)),
            "completions": [record.as_json() for record in records],
        }
