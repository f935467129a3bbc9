"""How the keys and values of a slot came to be: which kernels computed a row, and so its bits, depends on it.

A row's bits depend on the number of rows of its micro-batch and on where that began, not on how the rows behind it go
on. So a later computation of the same tokens, cut in the same way, has the same keys and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ComputedSpan:
    """`kept` tokens from `position` on: the first ones of a micro-batch of `rows` tokens, or, where `rows` is 1, tokens
    that were computed one by one."""

    position: int
    rows: int
    kept: int

    @property
    def end(self) -> int:
        return self.position + self.kept


class Trace:
    """The spans of one sequence, from position 0 on without a gap."""

    def __init__(self, spans: Sequence[ComputedSpan] = ()) -> None:
        self._spans = list(spans)

    def __len__(self) -> int:
        """Its tokens."""
        return self._spans[-1].end if self._spans else 0

    def __iter__(self) -> Iterator[ComputedSpan]:
        return iter(self._spans)

    @property
    def spans(self) -> tuple[ComputedSpan, ...]:
        return tuple(self._spans)

    def append(self, rows: int) -> None:
        """A micro-batch of `rows` tokens was computed at the end."""
        last = self._spans[-1] if self._spans else None
        if rows == 1 and last is not None and last.rows == 1:
            self._spans[-1] = replace(last, kept=last.kept + 1)
        else:
            self._spans.append(ComputedSpan(len(self), rows, rows))

    def cut(self, n: int) -> None:
        """Drops what is behind the first `n` tokens."""
        while self._spans and self._spans[-1].position >= n:
            self._spans.pop()
        if self._spans and self._spans[-1].end > n:
            self._spans[-1] = replace(self._spans[-1], kept=n - self._spans[-1].position)

    def first(self, n: int) -> tuple[ComputedSpan, ...]:
        """The spans of the first `n` tokens."""
        copy = Trace(self._spans)
        copy.cut(n)
        return copy.spans


def checked_trace(spans: Sequence[ComputedSpan], n: int) -> Trace:
    """The trace of `spans`, which are of exactly `n` tokens. Raises ValueError otherwise."""
    at = 0
    for span in spans:
        if span.position != at or span.kept < 1 or span.rows < 1 or (span.rows > 1 and span.kept > span.rows):
            raise ValueError("its spans do not follow each other")
        at = span.end
    if at != n:
        raise ValueError(f"its spans are of {at} tokens, not of {n}")
    return Trace(spans)
