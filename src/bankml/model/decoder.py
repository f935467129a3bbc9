"""A decoder-only transformer: one micro-batch of tokens through the embedding, every layer and the output."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from bankml import _native
from bankml.model.architectures import ARCHITECTURES, Block
from bankml.model.buffers import Buffers
from bankml.model.kv_cache import KVCache, LayerCells
from bankml.model.limits import MICRO_BATCH
from bankml.model.ops import Attention, ModelOps, Rope, Rows
from bankml.model.shape import ModelConfig, Temperature
from bankml.model.weights import Weights


class Decoder:
    """Weights, layers and buffers of one model: tokens in, the residual stream and logits out."""

    def __init__(
        self, config: ModelConfig, weights: Weights, pool: _native.Pool, cache: KVCache, llama_threads: int
    ) -> None:
        architecture = ARCHITECTURES[config.architecture]
        factors = _rope_factors(config, weights, cache.cells)
        self._ropes = [Rope(pool, config, config.rope, architecture.ROPE_NEOX, 0, factors)]
        attentions = [Attention(pool, config, cache.cells, llama_threads)]
        if config.window is not None:
            self._ropes.append(Rope(pool, config, config.window.rope, architecture.ROPE_NEOX, 1, None))
            attentions.append(Attention(pool, config, cache.window_cells, llama_threads, config.window.size))
        ops = ModelOps(config, weights, pool, self._ropes, attentions)
        embedding = "token_embd.weight"
        self._config = config
        self._weights = weights
        self._pool = pool
        self._embedding = _native.Embedding(weights.type(embedding), config.n_embd, weights.blocks(embedding))
        self._layers = [architecture.block(ops, i) for i in range(config.n_layer)]
        self._output_norm = ops.norm_of("output_norm.weight")
        self._output = ops.matrices(embedding if config.tied else "output.weight")
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
        self._begin(tokens, position, b)
        *body, last = zip(self._layers, cache.place(position, n), strict=True)
        for layer, cells in body:
            checkpoint()
            layer.attend(b, cells)
            checkpoint()
            layer.feed_forward(b)
        checkpoint()
        self._last_layer(*last, b, n, logits)

    def _begin(self, tokens: Sequence[int], position: int, b: Buffers) -> None:
        """The embedding, and what depends on the rows' positions."""
        self._embedding.look_up(np.asarray(tokens, np.int32), b.x)
        if self._config.embedding_factor != 1.0:
            _native.scale(b.x, self._config.n_embd, self._config.embedding_factor)
        for rope in self._ropes:
            rope.fill(position, b.rope)
        if self._config.temperature is not None:
            b.temperature[:] = [_temperature(self._config.temperature, position + i) for i in range(len(tokens))]

    def _last_layer(self, layer: Block, cells: LayerCells, b: Buffers, n: int, logits: Rows | None) -> None:
        layer.attend(b, cells)
        if logits is None:
            return
        b = b.last(n)
        layer.feed_forward(b)
        self._output_norm(b.x, b.normed)
        self._output(b.normed, logits)
        if self._config.logit_factor != 1.0:
            _native.scale(logits, self._config.n_vocab, self._config.logit_factor)
        if self._config.logit_softcap != 0.0:
            _native.softcap(self._pool, logits, self._config.logit_softcap)


def _rope_factors(config: ModelConfig, weights: Weights, cells: int) -> Rows | None:
    """The factors of a model that has them: long ones for a context beyond the original one (get_rope_factors)."""
    kind = "long" if cells > config.rope.original_context else "short"
    for name in ("rope_freqs.weight", f"rope_factors_{kind}.weight"):
        if weights.has(name):
            return weights.vector(name)
    return None


def _temperature(rule: Temperature, position: int) -> float:
    """In the reference's steps: the quotient in float32, the rest in double (llm_graph_input_attn_temp)."""
    turns = float(np.floor(np.float32(position) / np.float32(rule.context)))
    return math.log(turns + 1.0) * rule.scale + 1.0
