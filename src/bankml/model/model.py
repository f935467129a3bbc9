"""A verified model in memory: tokens in, logits out."""

import os
from collections.abc import Callable, Mapping, Sequence

from bankml import _native
from bankml.errors import UsageError
from bankml.gate.verify import Verified
from bankml.model.config import read_config
from bankml.model.decoder import Decoder
from bankml.model.kv_cache import CacheSize, CacheType, KVCache, cache_type_from
from bankml.model.limits import MAX_CONTEXT, MAX_THREADS, MICRO_BATCH, context_cells, context_size
from bankml.model.ops import Rows
from bankml.model.shape import ModelConfig
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


class Model:
    """The weights of one model and its forward pass. Not thread-safe: the engine serializes the calls of `forward`.

    `parallel` is the most sequences that are computed together; each has cells of its own (`new_cells`).
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
    ) -> None:
        pool = _native.Pool(threads)
        self._cells = context_cells(n_ctx)
        self._kind = kind
        self.arithmetic = Arithmetic(self._cells, kind.name, llama_threads)
        self.config = config
        self.n_ctx = context_size(n_ctx, config.context_length)
        self.parallel = parallel
        size = CacheSize.of(config, self._cells)
        self._decoder = Decoder(config, Weights(verified), pool, size, llama_threads, parallel)

    @classmethod
    def open(
        cls,
        verified: Verified,
        n_ctx: int,
        threads: int | None = None,
        environment: Mapping[str, str] = os.environ,
        parallel: int = 1,
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
        return cls(verified, config, n_ctx, workers, llama_threads, cache_type_from(environment), parallel)

    @property
    def n_vocab(self) -> int:
        return self.config.n_vocab

    def new_cells(self) -> KVCache:
        """Empty K/V cells for another sequence."""
        return KVCache(self.config, self._cells, self._kind)

    def forward(
        self, spans: Sequence[Span], logits: bool, checkpoint: Callable[[], None] = lambda: None
    ) -> Rows | None:
        """Computes one span of up to MICRO_BATCH tokens, or up to `parallel` spans of one token each (Decoder)."""
        _check_length(spans[0])
        if len(spans) > 1 and (len(spans) > self.parallel or any(len(span.tokens) > 1 for span in spans)):
            raise ValueError(f"only spans of one token are computed together, and at most {self.parallel}")
        return self._decoder.forward(spans, logits, checkpoint)

    def score(
        self, span: Span, rows: Callable[[int, Rows], None], checkpoint: Callable[[], None] = lambda: None
    ) -> None:
        """Computes one span of up to MICRO_BATCH tokens with the logits of every token (Decoder)."""
        _check_length(span)
        self._decoder.score(span, rows, checkpoint)

    def close(self) -> None:
        """Releases the weights; the model cannot be used afterwards."""
        del self._decoder


def _check_length(span: Span) -> None:
    if not 1 <= len(span.tokens) <= MICRO_BATCH:
        raise ValueError(f"a micro-batch has 1 to {MICRO_BATCH} tokens, not {len(span.tokens)}")
