"""A verified model in memory: tokens in, logits out."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bankml import _native
from bankml.errors import UsageError
from bankml.gate.verify import Verified
from bankml.model.config import read_config
from bankml.model.decoder import Decoder
from bankml.model.encoder import TransformerEncoder
from bankml.model.kv_cache import CacheSize, CacheType, KVCache, cache_type_from
from bankml.model.limits import MAX_CONTEXT, MAX_THREADS, MICRO_BATCH, context_cells, context_size
from bankml.model.no_cells import NoCells
from bankml.model.ops import Rows
from bankml.model.pooling import Pooler
from bankml.model.shape import ModelConfig, Pooling
from bankml.model.span import Span
from bankml.model.weights import Weights
from bankml.receipt.replay_record import Arithmetic

DEFAULT_LLAMA_THREADS = 3


def environment_count(environment: Mapping[str, str], name: str, default: int, most: int = MAX_THREADS) -> int:
    """A positive whole number from the environment. Raises UsageError, naming the variable."""
    text = environment.get(name)
    if text is None or text == "":
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise UsageError(f"{name} must be a whole number from 1 to {most}, not {text!r}")
    return int(text)


@dataclass(frozen=True)
class EmbeddingOptions:
    """How embeddings are computed: `pooling` None is what the file's header names; `longest` is the most tokens of a
    micro-batch."""

    pooling: Pooling | None = None
    longest: int = MICRO_BATCH


NO_EMBEDDINGS = EmbeddingOptions()


class Model:
    """The weights of one model and its forward pass. Not thread-safe: the engine serializes the calls of `forward`.

    `parallel` is the most sequences that are computed together; each has cells of its own (`new_cells`). `longest` is
    the most tokens of an input that is computed whole.
    """

    def __init__(
        self,
        verified: Verified,
        config: ModelConfig,
        n_ctx: int,
        threads: int,
        llama_threads: int,
        kind: CacheType,
        parallel: int = 1,
        embeddings: EmbeddingOptions = NO_EMBEDDINGS,
    ) -> None:
        pool, weights = _native.Pool(threads), Weights(verified)
        self._cells = context_cells(n_ctx)
        self._kind = kind
        self.arithmetic = Arithmetic(self._cells, kind.name, llama_threads)
        self.config = config
        self.n_ctx = context_size(n_ctx, config.context_length)
        self.parallel = parallel
        self.longest = embeddings.longest if config.encoder else min(embeddings.longest, self._cells)
        self.pooling: Pooling = embeddings.pooling or config.pooling or "none"
        self._decoder: Decoder | None = None
        self._encoder: TransformerEncoder | None = None
        if config.encoder:
            self._encoder = TransformerEncoder(config, weights, pool, min(self.longest, self.n_ctx), llama_threads)
            self._pooler = Pooler(self._encoder.ops, self.pooling)
        else:
            size = CacheSize.of(config, self._cells, self.longest)
            self._decoder = Decoder(config, weights, pool, size, llama_threads, parallel)
            self._pooler = Pooler(self._decoder.ops, self.pooling)

    @classmethod
    def open(
        cls,
        verified: Verified,
        n_ctx: int,
        threads: int | None = None,
        environment: Mapping[str, str] = os.environ,
        parallel: int = 1,
        embeddings: EmbeddingOptions = NO_EMBEDDINGS,
    ) -> "Model":
        """Opens a verified file for `parallel` sequences with a context of `n_ctx` tokens each.

        `threads`, else BANKML_THREADS, else every core. BANKML_LLAMA_THREADS is the `-t` of the llama-server whose
        bits are reproduced; BANKML_CACHE_TYPE is the type of the K/V cache. All are read from `environment`. Raises
        Refused for an unsupported model, ModelChanged, UsageError.
        """
        if not 1 <= n_ctx <= MAX_CONTEXT:
            raise UsageError(f"the context must be 1 to {MAX_CONTEXT} tokens, not {n_ctx}")
        config = read_config(verified.header)
        workers = threads or environment_count(environment, "BANKML_THREADS", len(os.sched_getaffinity(0)))
        llama_threads = environment_count(environment, "BANKML_LLAMA_THREADS", DEFAULT_LLAMA_THREADS)
        kind = cache_type_from(environment)
        return cls(verified, config, n_ctx, workers, llama_threads, kind, parallel, embeddings)

    @property
    def n_vocab(self) -> int:
        return self.config.n_vocab

    @property
    def generates(self) -> bool:
        """Whether it gives logits: an encoder gives embeddings alone."""
        return self._decoder is not None

    @property
    def width(self) -> int:
        """Values of an embedding."""
        return self.config.n_embd

    @property
    def embeds_whole(self) -> bool:
        """Whether an input has to be computed as one micro-batch to be embedded."""
        return self._pooler.whole

    def new_cells(self) -> KVCache | NoCells:
        """Empty K/V cells for another sequence."""
        if self.config.encoder:
            return NoCells()
        return KVCache(self.config, self._cells, self._kind, self.longest)

    def forward(
        self, spans: Sequence[Span], logits: bool, checkpoint: Callable[[], None] = lambda: None
    ) -> Rows | None:
        """Computes one span of up to MICRO_BATCH tokens, of an input to embed up to `longest`, or up to `parallel` ones
        of one token each (Decoder)."""
        _check_length(spans[0], max(MICRO_BATCH, self.longest))
        if len(spans) > 1 and (len(spans) > self.parallel or any(len(span.tokens) > 1 for span in spans)):
            raise ValueError(f"only spans of one token are computed together, and at most {self.parallel}")
        assert self._decoder is not None
        return self._decoder.forward(spans, logits, checkpoint)

    def score(
        self, span: Span, rows: Callable[[int, Rows], None], checkpoint: Callable[[], None] = lambda: None
    ) -> None:
        """Computes one span of up to MICRO_BATCH tokens with the logits of every token (Decoder)."""
        _check_length(span)
        assert self._decoder is not None
        self._decoder.score(span, rows, checkpoint)

    def embed(self, span: Span, checkpoint: Callable[[], None] = lambda: None) -> Rows:
        """Computes one span of up to `longest` tokens and pools the states of its tokens: float32 [1, width], or one
        row a token with pooling `none`."""
        _check_length(span, self.longest)
        passed = self._encoder or self._decoder
        assert passed is not None
        return self._pooler(passed.states(span, checkpoint))

    def close(self) -> None:
        """Releases the weights; the model cannot be used afterwards."""
        del self._decoder, self._encoder, self._pooler


def _check_length(span: Span, most: int = MICRO_BATCH) -> None:
    if not 1 <= len(span.tokens) <= most:
        raise ValueError(f"a micro-batch has 1 to {most} tokens, not {len(span.tokens)}")
