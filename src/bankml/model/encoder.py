"""An encoder: tokens that see each other in both directions, through every layer. Nothing is cached."""

from collections.abc import Callable

import numpy as np

from bankml import _native
from bankml.model.architectures import ENCODERS
from bankml.model.batch import Batch
from bankml.model.buffers import Buffers
from bankml.model.kv_cache import SpanCells, everything_visible
from bankml.model.ops import Attention, ModelOps, Rope, Rows
from bankml.model.pages import zeros
from bankml.model.shape import ModelConfig
from bankml.model.span import Span
from bankml.model.weights import Weights

TYPES, POSITIONS = "token_types.weight", "position_embd.weight"


class TransformerEncoder:
    """Weights, layers and buffers of one model: the tokens of an input in, a state of each out."""

    def __init__(
        self, config: ModelConfig, weights: Weights, pool: _native.Pool, most: int, llama_threads: int
    ) -> None:
        """`most`: the tokens of the longest input."""
        architecture = ENCODERS[config.architecture]
        self._batch = Batch()
        self._rope = Rope(pool, config, config.rope, architecture.ROPE_NEOX, 0, None)
        attention = Attention(pool, self._batch, config, most, llama_threads)
        self.ops = ModelOps(config, weights, pool, self._batch, [self._rope], [attention])
        self._tokens = self._rows_of("token_embd.weight")
        self._positions = self._rows_of(POSITIONS) if weights.has(POSITIONS) else None
        self._type = np.zeros((1, config.n_embd), np.float32)
        if weights.has(TYPES):
            self._rows_of(TYPES).look_up(np.zeros(1, np.int32), self._type)
        self._norm = self.ops.layer_norm_of("token_embd_norm")
        self._layers = [architecture.layer(self.ops, i) for i in range(config.n_layer)]
        self._buffers = Buffers.of(config, most)
        shape = (config.kv_heads, most, config.head_size)
        self._k, self._v = zeros(shape, np.uint16), zeros(shape, np.uint16)

    def _rows_of(self, tensor: str) -> _native.Embedding:
        weights = self.ops.weights
        return _native.Embedding(weights.type(tensor), self.ops.config.n_embd, weights.blocks(tensor))

    def states(self, span: Span, checkpoint: Callable[[], None]) -> Rows:
        """The states of a whole input, float32 [n, n_embd], whose memory is overwritten by the next call. `checkpoint`
        is called between operations and may raise."""
        n = len(span.tokens)
        b = self._buffers.first(n)
        with self._batch.of([span], checkpoint):
            self._begin(span, b)
            cells = [SpanCells(self._k, self._v, everything_visible(n))]
            for layer in self._layers:
                layer(b, cells)
        return b.x

    def _begin(self, span: Span, b: Buffers) -> None:
        """The sum of what stands for a token, for its type, which is that of a first sentence, and for its position."""
        n = len(span.tokens)
        self._tokens.look_up(np.asarray(span.tokens, np.int32), b.x)
        np.add(b.x, self._type, out=b.x)
        if self._positions is not None:
            self._positions.look_up(np.arange(n, dtype=np.int32), b.normed)
            _native.add(b.normed, b.x)
        self._norm(b.x, b.x)
        self._rope.fill([span], b.rope)
