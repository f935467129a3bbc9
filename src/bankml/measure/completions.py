"""Records of the last 256 completions, and totals of all."""

import json
import threading
from collections import deque
from dataclasses import dataclass
from typing import TypeVar

RING = 256

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Record:
    """One completion. Values that were not measured are None.

    `time` is when it ended, in seconds since the epoch. `prompt_ms` goes from the start of computing to the first
    token, `eval_ms` from there to the last, `ttft_ms` from the request's first byte to the first token, waiting in line
    included. `grammar_ms` and `resampled` (tokens that were sampled again) are those of a completion with a
    grammar. `energy_j` is the energy of the processor's packages meanwhile, by all processes. The two
    hashes are those of the response's receipt; an interrupted one has none.
    """

    time: float
    model: str | None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
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
        """Prompt tokens computed, without those in the cache."""
        return rate((self.prompt_tokens or 0) - (self.cached_tokens or 0), self.prompt_ms)

    @property
    def predicted_per_second(self) -> float | None:
        """Forward passes after the prompt's: one fewer than the tokens, since the first came with the prompt."""
        return rate((self.completion_tokens or 0) - 1, self.eval_ms)

    def as_json(self) -> dict[str, object]:
        """Milliseconds rounded to three places; rates are computed before rounding."""
        times = {name: _rounded(getattr(self, name)) for name in ("time", "prompt_ms", "eval_ms", "grammar_ms")}
        rates = {"prompt_per_second": self.prompt_per_second, "predicted_per_second": self.predicted_per_second}
        return vars(self) | times | rates


@dataclass(frozen=True)
class Totals:
    """Sums over all completions since the start. A sum of values that were never measured is None.

    `cache_hits` are the completions that found some of their prompt computed already.
    """

    completions: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    prompt_ms: float | None = None
    eval_ms: float | None = None
    grammar_ms: float | None = None
    resampled: int | None = None
    energy_j: float | None = None

    def plus(self, record: Record) -> "Totals":
        return Totals(
            completions=self.completions + 1,
            cache_hits=self.cache_hits + (1 if record.cached_tokens else 0),
            prompt_tokens=self.prompt_tokens + (record.prompt_tokens or 0),
            cached_tokens=self.cached_tokens + (record.cached_tokens or 0),
            completion_tokens=self.completion_tokens + (record.completion_tokens or 0),
            prompt_ms=_sum(self.prompt_ms, record.prompt_ms),
            eval_ms=_sum(self.eval_ms, record.eval_ms),
            grammar_ms=_sum(self.grammar_ms, record.grammar_ms),
            resampled=_sum(self.resampled, record.resampled),
            energy_j=_sum(self.energy_j, record.energy_j),
        )


def rate(count: int, ms: float | None) -> float | None:
    """`count` per second; None when either value is None or the time is 0."""
    return count * 1000 / ms if count > 0 and ms is not None and ms > 0 else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _sum(before: Number | None, more: Number | None) -> Number | None:
    if before is None or more is None:
        return before if more is None else more
    return before + more


class Completions:
    """The ring and the totals. Thread-safe.

    The JSON is serialized once per change, since many clients may poll.
    """

    def __init__(self, kept: int = RING) -> None:
        self._guard = threading.Lock()
        self._kept = kept
        self._ring: deque[bytes] = deque(maxlen=kept)
        self._totals = Totals()
        self._written: bytes | None = None

    def record(self, record: Record) -> None:
        line = _json(record.as_json())
        with self._guard:
            self._ring.append(line)
            self._totals = self._totals.plus(record)
            self._written = None

    def written(self) -> bytes:
        """The JSON of `GET /bankml/metrics`, the newest completion last."""
        with self._guard:
            if self._written is None:
                head = b'{"ring": %d, "totals": %s, "completions": [' % (self._kept, _json(vars(self._totals)))
                self._written = head + b", ".join(self._ring) + b"]}"
            return self._written


def _json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
