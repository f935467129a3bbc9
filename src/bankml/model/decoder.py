"""A decoder-only transformer: one micro-batch of tokens through the embedding, every layer and the output."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.model.architectures import ARCHITECTURES, Block
from bankml.model.buffers import Buffers
from bankml.model.kv_cache import KVCache
from bankml.model.ops import Attention, ModelOps, Rope, Rows
from bankml.model.shape import ModelConfig
from bankml.model.weights import Weights

MICRO_BATCH = 512  # tokens, llama-server's default --ubatch-size

SCORED_ROWS = 32
"""Rows whose logits are in memory at once; those of a micro-batch and a large vocabulary would take 300 MB. The last
part takes what would be less than half of one, so that it is a product of many rows too."""


class Decoder:
    """Weights, layers and buffers of one model: tokens in, the residual stream and logits out."""

    def __init__(
        self, config: ModelConfig, weights: Weights, pool: _native.Pool, cells: int, llama_threads: int
    ) -> None:
        architecture = ARCHITECTURES[config.architecture]
        self._rope = Rope(pool, config, architecture.ROPE_NEOX)
        ops = ModelOps(config, weights, pool, self._rope, Attention(pool, config, cells, llama_threads))
        embedding = "token_embd.weight"
        self._weights = weights
        self._embedding = _native.Embedding(weights.type(embedding), config.n_embd, weights.blocks(embedding))
        self._layers = [architecture.block(ops, i) for i in range(config.n_layer)]
        self._output_norm = ops.norm("output_norm")
        self._output = ops.linear("token_embd" if config.tied else "output")
        self._buffers = Buffers.of(config, MICRO_BATCH)
        self._one = self._buffers.first(1)
        self._n_vocab = config.n_vocab

    def forward(
        self,
        tokens: Sequence[int],
        position: int,
        cache: KVCache,
        logits: Rows | None,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """Computes tokens at `position` on into `cache`; with `logits` (float32 [1, n_vocab]) the last token's logits.

        `checkpoint` is called between layers and may raise: the cells from `position` on are undefined then. At most
        MICRO_BATCH tokens; the last layer continues with the last row alone, as llama.cpp's inp_out_ids do.
        """
        n = len(tokens)
        b = self._body(tokens, position, cache, checkpoint)
        self._last_layer(self._layers[-1], cache.layers[-1], b, n, position, logits)

    def score(
        self,
        tokens: Sequence[int],
        position: int,
        cache: KVCache,
        rows: Callable[[int, Rows], None],
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """The same, with every token's logits: `rows` gets them in parts [some, n_vocab], with the position of the
        first. All rows go through the last layer together, as in llama.cpp where every token's logits are wanted."""
        n = len(tokens)
        b = self._body(tokens, position, cache, checkpoint)
        layer, (k, v) = self._layers[-1], cache.layers[-1]
        layer.attend(b, position, k, v)
        layer.feed_forward(b)
        self._output_norm(b.x, b.normed)
        start = 0
        while start < n:
            end = n if n - start < SCORED_ROWS * 3 // 2 else start + SCORED_ROWS
            logits = np.empty((end - start, self._n_vocab), np.float32)
            self._output(b.normed[start:end], logits)
            rows(position + start, logits)
            start = end

    def _body(self, tokens: Sequence[int], position: int, cache: KVCache, checkpoint: Callable[[], None]) -> Buffers:
        """The embedding and every layer but the last."""
        n = len(tokens)
        b = self._one if n == 1 else self._buffers.first(n)
        self._embedding.look_up(np.asarray(tokens, np.int32), b.x)
        self._rope.table(position, b.rope)
        for layer, (k, v) in zip(self._layers[:-1], cache.layers[:-1], strict=True):
            checkpoint()
            layer.attend(b, position, k, v)
            checkpoint()
            layer.feed_forward(b)
        checkpoint()
        return b

    def _last_layer(
        self,
        layer: Block,
        kv: tuple[npt.NDArray[Any], npt.NDArray[Any]],
        b: Buffers,
        n: int,
        position: int,
        logits: Rows | None,
    ) -> None:
        layer.attend(b, position, *kv)
        if logits is None:
            return
        b = b.last(n)
        layer.feed_forward(b)
        self._output_norm(b.x, b.normed)
        self._output(b.normed, logits)
