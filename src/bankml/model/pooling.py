"""The states of an input's tokens to its vector, or to its score."""

import numpy as np

from bankml import _native
from bankml.model.ops import Linear, ModelOps, Rows
from bankml.model.shape import Pooling, unsupported

CLASSIFIER = ("cls.weight", "cls.output.weight")


class Pooler:
    """Pools by one rule. With `rank` a vector has the outputs of the model's classifier, of which the first is the
    score."""

    def __init__(self, ops: ModelOps, pooling: Pooling) -> None:
        """Raises Refused for `rank` where the model has no classifier."""
        self._ops = ops
        self._pooling = pooling
        self._hidden, self._output = (
            ops.matrices(one) if pooling == "rank" and ops.weights.has(one) else None for one in CLASSIFIER
        )
        if pooling == "rank" and self._hidden is None and self._output is None:
            raise unsupported("pooling rank needs a classifier, and the model has neither 'cls' nor 'cls.output'")

    @property
    def whole(self) -> bool:
        """Whether an input has to be computed as one micro-batch."""
        return self._ops.config.encoder or self._pooling != "last"

    def __call__(self, states: Rows) -> Rows:
        """states [n, n_embd] to [1, width], or with `none` [n, n_embd]: memory of its own."""
        if self._pooling == "none":
            return states.copy()
        if self._pooling == "mean":
            mean = np.empty((1, states.shape[1]), np.float32)
            _native.mean_of_rows(states, mean[0])
            return mean
        first = self._pooling == "cls" or (self._pooling == "rank" and self._ops.config.encoder)
        row = (states[:1] if first else states[-1:]).copy()
        return self._classified(row) if self._pooling == "rank" else row

    def _classified(self, row: Rows) -> Rows:
        if self._hidden is not None:
            row = self._applied(self._hidden, row, self._ops.config.n_embd)
            _native.softcap(self._ops.pool, row, 1.0)  # tanh
        if self._output is not None:
            row = self._applied(self._output, row, self._ops.config.classes)
        if not self._ops.config.encoder:
            _native.softmax(row[0])
        return row

    def _applied(self, matrix: Linear, row: Rows, width: int) -> Rows:
        out = np.empty((1, width), np.float32)
        with self._ops.batch.of_length(1):
            matrix(row, out)
        return out
