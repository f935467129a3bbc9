"""A decoder-only transformer: tokens through the embedding, every layer and the output."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from bankml import _native
from bankml.model.architectures import ARCHITECTURES
from bankml.model.batch import Batch
from bankml.model.buffers import Buffers
from bankml.model.kv_cache import CacheSize
from bankml.model.limits import MICRO_BATCH
from bankml.model.ops import Attention, ModelOps, Rope, Rows
from bankml.model.shape import ModelConfig, Temperature
from bankml.model.span import Span
from bankml.model.weights import Weights

SCORED_ROWS = 64
"""Rows of logits that are computed at once where those of every token are wanted: n_vocab floats each."""


class Decoder:
    """Weights, layers and buffers of one model: tokens in, the residual stream and logits out."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        pool: _native.Pool,
        size: CacheSize,
        llama_threads: int,
        parallel: int = 1,
    ) -> None:
        """`size` is that of a sequence's cache, `parallel` the most spans of one token that are computed together."""
        architecture = ARCHITECTURES[config.architecture]
        self._batch = Batch()
        factors = _rope_factors(config, weights, size.cells)
        self._ropes = [Rope(pool, config, config.rope, architecture.ROPE_NEOX, 0, factors)]
        attentions = [Attention(pool, self._batch, config, size.cells, llama_threads)]
        if config.window is not None:
            self._ropes.append(Rope(pool, config, config.window.rope, architecture.ROPE_NEOX, 1, None))
            window = config.window.size
            attentions.append(Attention(pool, self._batch, config, size.window_cells, llama_threads, window))
        self.ops = ops = ModelOps(config, weights, pool, self._batch, self._ropes, attentions)
        embedding = "token_embd.weight"
        self._config = config
        self._weights = weights
        self._pool = pool
        self._embedding = _native.Embedding(weights.type(embedding), config.n_embd, weights.blocks(embedding))
        self._layers = [architecture.block(ops, i) for i in range(config.n_layer)]
        self._output_norm = ops.norm_of("output_norm.weight")
        self._output = ops.matrices(embedding if config.tied else "output.weight")
        self._prompt = Buffers.of(config, MICRO_BATCH)
        decoding = Buffers.of(config, parallel)
        self._decoding = [decoding.first(n + 1) for n in range(parallel)]
        self._prompt_logits: Rows = np.zeros((1, config.n_vocab), np.float32)
        self._decoding_logits: Rows = np.zeros((parallel, config.n_vocab), np.float32)

    def forward(self, spans: Sequence[Span], logits: bool, checkpoint: Callable[[], None]) -> Rows | None:
        """Computes one span of up to MICRO_BATCH tokens, or up to `parallel` spans of one token each.

        With `logits`: float32 [len(spans), n_vocab] of each span's last token; the memory is overwritten by the next
        call of the same kind. `checkpoint` is called between operations and may raise: the spans' cells are undefined
        then. The last layer continues with the last row alone, as llama.cpp's inp_out_ids do.
        """
        n = len(spans[0].tokens)
        b = self._decoding[len(spans) - 1] if n == 1 else self._buffers(n)
        with self._batch.of(spans, checkpoint):
            self._body(spans, b)
            if not logits:
                return None
            out = self._decoding_logits[: len(spans)] if n == 1 else self._prompt_logits
            with self._batch.of_length(1):
                last = b if n == 1 else b.last(n)
                self._last_rows(last)
                self._logits(last.normed, out)
            return out

    def score(self, span: Span, rows: Callable[[int, Rows], None], checkpoint: Callable[[], None]) -> None:
        """Computes one span with every token's logits: `rows` gets them in parts [some, n_vocab], with the position of
        the first. All rows go through the last layer together, as in llama.cpp where all tokens' logits are wanted."""
        n = len(span.tokens)
        b = self._prompt.first(n)
        with self._batch.of([span], checkpoint):
            self._body([span], b)
            self._last_rows(b)
            start = 0
            while start < n:
                end = n if n - start < SCORED_ROWS * 3 // 2 else start + SCORED_ROWS
                logits = np.empty((end - start, self._config.n_vocab), np.float32)
                with self._batch.of_length(end - start):
                    self._logits(b.normed[start:end], logits)
                rows(span.position + start, logits)
                start = end

    def states(self, span: Span, checkpoint: Callable[[], None]) -> Rows:
        """Computes one span; the state of each token before the output matrix, float32 [n, n_embd], whose memory is
        overwritten by the next call. All rows go through the last layer, as in llama.cpp's graph of embeddings."""
        b = self._buffers(len(span.tokens))
        with self._batch.of([span], checkpoint):
            self._body([span], b)
            self._last_rows(b)
        return b.normed

    def _buffers(self, n: int) -> Buffers:
        """Those of a span of n tokens; of more than MICRO_BATCH, which only embeddings have, for this span alone."""
        return self._prompt.first(n) if n <= MICRO_BATCH else Buffers.of(self._config, n)

    def _body(self, spans: Sequence[Span], b: Buffers) -> None:
        """The embedding, every layer but the last, and that one's attention."""
        self._begin(spans, b)
        n = len(spans[0].tokens)
        cells = zip(*(span.cells.place(span.position, n) for span in spans), strict=True)
        *body, last = zip(self._layers, cells, strict=True)
        for layer, own in body:
            layer.attend(b, own)
            layer.feed_forward(b)
        last[0].attend(b, last[1])

    def _begin(self, spans: Sequence[Span], b: Buffers) -> None:
        """The embedding, and what depends on the rows' positions."""
        tokens = spans[0].tokens if len(spans) == 1 else [span.tokens[0] for span in spans]
        self._embedding.look_up(np.asarray(tokens, np.int32), b.x)
        if self._config.embedding_factor != 1.0:
            _native.scale(b.x, self._config.n_embd, self._config.embedding_factor)
        for rope in self._ropes:
            rope.fill(spans, b.rope)
        if self._config.temperature is not None:
            positions = [span.position + i for span in spans for i in range(len(span.tokens))]
            b.temperature[:] = [_temperature(self._config.temperature, position) for position in positions]

    def _last_rows(self, b: Buffers) -> None:
        """The rest of the last layer, and the norm before the output."""
        self._layers[-1].feed_forward(b)
        self._output_norm(b.x, b.normed)

    def _logits(self, normed: Rows, logits: Rows) -> None:
        self._output(normed, logits)
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
