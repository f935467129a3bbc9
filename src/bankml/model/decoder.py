"""A decoder-only transformer: tokens through the embedding, every layer and the output."""

from collections.abc import Callable, Sequence

import numpy as np

from bankml import _native
from bankml.model.architectures import ARCHITECTURES
from bankml.model.batch import Batch
from bankml.model.buffers import Buffers
from bankml.model.ops import ModelOps, Rope, Rows
from bankml.model.shape import ModelConfig
from bankml.model.span import Span
from bankml.model.weights import Weights

MICRO_BATCH = 512  # tokens, llama-server's default --ubatch-size

SCORED_ROWS = 32
"""Rows whose logits are in memory at once; those of a micro-batch and a large vocabulary would take 300 MB. The last
part takes what would be less than half of one, so that it is a product of many rows too."""


class Decoder:
    """Weights, layers and buffers of one model: tokens in, the residual stream and logits out."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        pool: _native.Pool,
        cells: int,
        llama_threads: int,
        parallel: int = 1,
    ) -> None:
        """`parallel`: the most spans of one token that are computed together."""
        architecture = ARCHITECTURES[config.architecture]
        self._batch = Batch()
        self._rope = Rope(pool, config, architecture.ROPE_NEOX)
        ops = ModelOps(config, weights, pool, self._batch, self._rope, cells, llama_threads)
        embedding = "token_embd.weight"
        self._weights = weights
        self._embedding = _native.Embedding(weights.type(embedding), config.n_embd, weights.blocks(embedding))
        self._layers = [architecture.block(ops, i) for i in range(config.n_layer)]
        self._output_norm = ops.norm("output_norm")
        self._output = ops.linear("token_embd" if config.tied else "output")
        self._prompt = Buffers.of(config, MICRO_BATCH)
        decoding = Buffers.of(config, parallel)
        self._decoding = [decoding.first(n + 1) for n in range(parallel)]
        self._n_vocab = config.n_vocab
        self._prompt_logits: Rows = np.zeros((1, config.n_vocab), np.float32)
        self._decoding_logits: Rows = np.zeros((parallel, config.n_vocab), np.float32)

    def forward(self, spans: Sequence[Span], logits: bool, checkpoint: Callable[[], None]) -> Rows | None:
        """Computes one span of up to MICRO_BATCH tokens, or up to `parallel` spans of one token each.

        With `logits`: float32 [len(spans), n_vocab] of each span's last token; the memory is overwritten by the next
        call of the same kind. `checkpoint` is called between operations and may raise: the spans' cells are undefined
        then. The last layer continues with the last row alone, as llama.cpp's inp_out_ids do.
        """
        n = len(spans[0].tokens)
        b = self._decoding[len(spans) - 1] if n == 1 else self._prompt.first(n)
        with self._batch.of(spans, checkpoint):
            self._body(spans, b)
            if not logits:
                return None
            if n == 1:
                return self._output_rows(b, self._decoding_logits[: len(spans)])
            with self._batch.of_length(1):
                return self._output_rows(b.last(n), self._prompt_logits)

    def score(self, span: Span, rows: Callable[[int, Rows], None], checkpoint: Callable[[], None]) -> None:
        """Computes one span with every token's logits: `rows` gets them in parts [some, n_vocab], with the position of
        the first. All rows go through the last layer together, as in llama.cpp where all tokens' logits are wanted."""
        n = len(span.tokens)
        b = self._prompt.first(n)
        with self._batch.of([span], checkpoint):
            self._body([span], b)
            self._layers[-1].feed_forward(b)
            self._output_norm(b.x, b.normed)
            start = 0
            while start < n:
                end = n if n - start < SCORED_ROWS * 3 // 2 else start + SCORED_ROWS
                logits = np.empty((end - start, self._n_vocab), np.float32)
                with self._batch.of_length(end - start):
                    self._output(b.normed[start:end], logits)
                rows(span.position + start, logits)
                start = end

    def _body(self, spans: Sequence[Span], b: Buffers) -> None:
        """The embedding, every layer but the last, and that one's attention."""
        tokens = spans[0].tokens if len(spans) == 1 else [span.tokens[0] for span in spans]
        self._embedding.look_up(np.asarray(tokens, np.int32), b.x)
        self._rope.table(spans, b.rope)
        *body, last = self._layers
        for layer in body:
            layer.attend(b)
            layer.feed_forward(b)
        last.attend(b)

    def _output_rows(self, b: Buffers, logits: Rows) -> Rows:
        """The rest of the last layer, and the output."""
        self._layers[-1].feed_forward(b)
        self._output_norm(b.x, b.normed)
        self._output(b.normed, logits)
        return logits
