"""A verified model in memory: tokens in, logits out, with the K/V cache."""

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.errors import UsageError
from bankml.gate.verify import Verified
from bankml.model.config import read_config
from bankml.model.decoder import Decoder
from bankml.model.kv_cache import CacheType, KVCache, KVCells, WindowState, cache_type_from
from bankml.model.limits import MAX_CONTEXT, MAX_THREADS, MICRO_BATCH, context_cells, context_size
from bankml.model.shape import ModelConfig
from bankml.model.weights import Weights

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
    """One model and one K/V cache. Not thread-safe: the engine serializes its calls.

    `logits` is float32 [n_vocab], written by `forward(…, logits=True)`.
    """

    def __init__(
        self, verified: Verified, config: ModelConfig, n_ctx: int, threads: int, llama_threads: int, kind: CacheType
    ) -> None:
        pool = _native.Pool(threads)
        cells = context_cells(n_ctx)
        self.config = config
        self.n_ctx = context_size(n_ctx, config.context_length)
        self.cache = KVCache(config, cells, kind)
        self._decoder = Decoder(config, Weights(verified), pool, self.cache, llama_threads)
        self._logits = np.zeros((1, config.n_vocab), np.float32)
        self.logits: npt.NDArray[np.float32] = self._logits[0]

    @classmethod
    def open(
        cls, verified: Verified, n_ctx: int, threads: int | None = None, environment: Mapping[str, str] = os.environ
    ) -> "Model":
        """Opens a verified file for a context of `n_ctx` tokens.

        `threads`, else BANKML_THREADS, else every core. BANKML_LLAMA_THREADS is the `-t` of the llama-server whose
        bits are reproduced; BANKML_CACHE_TYPE is the type of the K/V cache. All are read from `environment`. Raises
        Refused for an unsupported model, ModelChanged, UsageError.
        """
        if not 1 <= n_ctx <= MAX_CONTEXT:
            raise UsageError(f"the context must be 1 to {MAX_CONTEXT} tokens, not {n_ctx}")
        config = read_config(verified.header)
        workers = threads or environment_count(environment, "BANKML_THREADS", len(os.sched_getaffinity(0)))
        llama_threads = environment_count(environment, "BANKML_LLAMA_THREADS", DEFAULT_LLAMA_THREADS)
        return cls(verified, config, n_ctx, workers, llama_threads, cache_type_from(environment))

    def forward(
        self,
        tokens: Sequence[int],
        position: int,
        logits: bool,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """Computes up to MICRO_BATCH tokens into cells `position` on; with `logits`, the last one's in self.logits."""
        if not 1 <= len(tokens) <= MICRO_BATCH:
            raise ValueError(f"a micro-batch has 1 to {MICRO_BATCH} tokens, not {len(tokens)}")
        self._decoder.forward(tokens, position, self.cache, self._logits if logits else None, checkpoint)

    @property
    def cache_type(self) -> str:
        return self.cache.kind.name

    @property
    def cell_bytes(self) -> int:
        """Bytes that one token's keys and values take."""
        return self.cache.cell_bytes

    @property
    def window(self) -> int:
        """Positions that layers with a sliding window see; 0: there are none."""
        return 0 if self.config.window is None else self.config.window.size

    @property
    def window_first(self) -> int:
        """The lowest position that those layers have; -1: none."""
        return self.cache.window_first

    def truncate_window(self, n_tokens: int) -> None:
        """Drops what those layers have beyond the first `n_tokens` positions."""
        self.cache.truncate_window(n_tokens)

    def save_window(self) -> WindowState:
        """A copy of what those layers still see."""
        state = self.cache.save_window()
        if state is None:
            raise ValueError("the model has no sliding window")
        return state

    def load_window(self, state: WindowState) -> None:
        """Puts the copy back."""
        self.cache.load_window(state)

    def view(self, n: int) -> KVCells:
        """The first `n` cells of the cache themselves, not a copy."""
        return self.cache.view(n)

    def save(self, n: int) -> KVCells:
        """A copy of the first `n` cells of the cache."""
        return self.cache.save(n)

    def load(self, state: KVCells, n: int) -> None:
        """Copies the first `n` cells of `state` into the cache."""
        self.cache.load(state, n)

    def close(self) -> None:
        """Releases the weights and the cache; the model cannot be used afterwards."""
        del self._decoder, self.cache, self._logits, self.logits
