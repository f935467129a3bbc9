"""Counters of all requests: a few additions under a lock per request."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bankml.measure.completions import Record, Totals

TTFT_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The buckets' upper ends for the time to the first token."""

TOKENS_PER_SECOND = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 500.0, 1000.0)
"""The buckets' upper ends for rates."""


@dataclass(frozen=True)
class Distribution:
    """Observations by bucket: `counts` has one more entry than `bounds`, and buckets are not cumulative."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


class Histogram:
    """Not thread-safe by itself."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float | None) -> None:
        """None is not counted."""
        if value is not None:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._total += value

    def distribution(self) -> Distribution:
        return Distribution(self._bounds, tuple(self._counts), self._total)


@dataclass(frozen=True)
class MetricCounts:
    """A snapshot: requests by route and status, refused requests by status."""

    requests: Mapping[tuple[str, int], int]
    refused: Mapping[int, int]
    totals: Totals
    ttft_seconds: Distribution
    prompt_rate: Distribution
    predicted_rate: Distribution


class Counters:
    """Sums since the start. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._refused: Counter[int] = Counter()
        self._totals = Totals()
        self._ttft = Histogram(TTFT_SECONDS)
        self._prompt_rate = Histogram(TOKENS_PER_SECOND)
        self._predicted_rate = Histogram(TOKENS_PER_SECOND)

    def request(self, route: str, status: int) -> None:
        """A request was handled. `route` is one of a fixed set: a client's input is never a label."""
        with self._guard:
            self._requests[route, status] += 1

    def refused(self, status: int) -> None:
        """A request broke an HTTP rule, before it had a route."""
        with self._guard:
            self._refused[status] += 1

    def answered(self, record: Record) -> None:
        """Tokens were computed for a request, whether or not its response was complete."""
        with self._guard:
            self._totals = self._totals.plus(record)
            self._ttft.observe(None if record.ttft_ms is None else record.ttft_ms / 1000)
            self._prompt_rate.observe(record.prompt_per_second)
            self._predicted_rate.observe(record.predicted_per_second)

    def counts(self) -> MetricCounts:
        with self._guard:
            return MetricCounts(
                dict(self._requests),
                dict(self._refused),
                self._totals,
                self._ttft.distribution(),
                self._prompt_rate.distribution(),
                self._predicted_rate.distribution(),
            )
