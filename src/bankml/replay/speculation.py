"""A forward pass that computes several tokens of one sequence at once, where it is known what they will probably be.

An answer that is replayed is known: its next tokens are proposed, and their rows go through each weight matrix
together, every row with the kernels of a lone one. A row has the bits that it has when the tokens come one by one. Only
rows of tokens that were really sampled are used, so a wrong proposal costs time and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bankml.engine.parts import Cells, ForwardPass, Logits, ScoredRows, Vectors
from bankml.model.span import Span

Proposals = Callable[[Sequence[int]], Sequence[int]]
"""From an answer's tokens so far to those that probably follow."""


def _no_proposals(tokens: Sequence[int]) -> Sequence[int]:
    return ()


@dataclass
class _Sequence:
    """One sequence's answer: the position at which it begins, its tokens, and rows that were computed ahead of need."""

    proposals: Proposals = _no_proposals
    begin: int = 0
    tokens: list[int] = field(default_factory=list)
    ahead: dict[tuple[int, int], Logits] = field(default_factory=dict)

    def extend(self, span: Span) -> None:
        """The sequence goes on with the one token of `span`, which may be the last of the prompt."""
        if span.position >= self.begin:
            del self.tokens[span.position - self.begin :]
            self.tokens += span.tokens


class SpeculativePass:
    """`model` with up to `width` tokens of one sequence at once. `computed` counts rows, `used` those of them that were
    sampled from."""

    def __init__(self, model: ForwardPass, width: int) -> None:
        self._model = model
        self._width = width
        self._sequences: dict[int, _Sequence] = {}
        self.computed = self.used = 0

    @property
    def n_ctx(self) -> int:
        return self._model.n_ctx

    @property
    def n_vocab(self) -> int:
        return self._model.n_vocab

    @property
    def longest(self) -> int:
        return self._model.longest

    @property
    def embeds_whole(self) -> bool:
        return self._model.embeds_whole

    @property
    def generates(self) -> bool:
        return self._model.generates

    def embed(self, span: Span, checkpoint: Callable[[], None] = lambda: None) -> Vectors:
        return self._model.embed(span, checkpoint)

    def new_cells(self) -> Cells:
        return self._model.new_cells()

    def close(self) -> None:
        self._model.close()

    def propose(self, cells: object, begin: int, proposals: Proposals) -> None:
        """`proposals` gives the tokens of the answer in `cells`, which begins at the position `begin`."""
        self._sequences[id(cells)] = _Sequence(proposals, begin)

    def score(self, span: Span, rows: ScoredRows, checkpoint: Callable[[], None] = lambda: None) -> None:
        self._model.score(span, rows, checkpoint)

    def forward(
        self, spans: Sequence[Span], logits: bool, checkpoint: Callable[[], None] = lambda: None
    ) -> Logits | None:
        """As ForwardPass.forward; spans of one token are computed one after the other."""
        if len(spans[0].tokens) > 1 or not logits:
            return self._model.forward(spans, logits, checkpoint)
        return np.stack([self._row(span) for span in spans])

    def known(self, cells: Any, tokens: Sequence[int], position: int) -> None:
        """Computes known tokens one by one, from `position` on: as many at once as go."""
        for at in range(0, len(tokens), self._width):
            part = tokens[at : at + self._width]
            self._model.forward([Span([token], position + at + i, cells) for i, token in enumerate(part)], True)

    def _row(self, span: Span) -> Logits:
        sequence = self._sequences.setdefault(id(span.cells), _Sequence())
        sequence.extend(span)
        key = (span.position, span.tokens[0])
        if key not in sequence.ahead:
            sequence.ahead = self._computed(span, sequence)
        self.used += 1
        return sequence.ahead[key]

    def _computed(self, span: Span, sequence: _Sequence) -> dict[tuple[int, int], Logits]:
        room = min(self._width, self.n_ctx - span.position)
        tokens = [span.tokens[0], *sequence.proposals(sequence.tokens)[: room - 1]] if room > 1 else [span.tokens[0]]
        places = range(span.position, span.position + len(tokens))
        rows = self._model.forward([Span([t], at, span.cells) for t, at in zip(tokens, places, strict=True)], True)
        assert rows is not None  # logits were asked for
        self.computed += len(tokens)
        return {(at, token): row for at, token, row in zip(places, tokens, rows.copy(), strict=True)}
