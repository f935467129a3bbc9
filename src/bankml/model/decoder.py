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
        b = self._one if n == 1 else self._buffers.first(n)
        self._embedding.look_up(np.asarray(tokens, np.int32), b.x)
        self._rope.table(position, b.rope)
        *body, last = zip(self._layers, cache.layers, strict=True)
        for layer, (k, v) in body:
            checkpoint()
            layer.attend(b, position, k, v)
            checkpoint()
            layer.feed_forward(b)
        checkpoint()
        self._last_layer(*last, b, n, position, logits)

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
