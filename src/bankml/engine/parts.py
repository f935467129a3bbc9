"""What the engine needs of the rooms below: each as narrow as its use, so that any of them can be another make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bankml.model.kv_cache import State


class Cells(Protocol):
    """The K/V cache as memory: the cells of the first tokens, copied out and back."""

    @property
    def cell_bytes(self) -> int:
        """Bytes that one token's keys and values take."""

    @property
    def cache_type(self) -> str:
        """`f16` or `q8_0`."""

    def view(self, n: int) -> State:
        """The first `n` cells themselves, not a copy."""

    def save(self, n: int) -> State:
        """A copy of the first `n` cells."""

    def load(self, state: State, n: int) -> None:
        """Puts the first `n` cells of `state` back."""


class ForwardPass(Cells, Protocol):
    """The model with its K/V cache of `n_ctx` positions."""

    @property
    def n_ctx(self) -> int: ...

    @property
    def logits(self) -> NDArray[np.float32]:
        """float32 `[n_vocab]`, of the last token of the last `forward` that asked for them; overwritten by the next."""

    def forward(self, tokens: Sequence[int], position: int, logits: bool) -> None:
        """Computes 1 to 512 tokens whose first stands at `position`, into the cache from there on."""


class Vocabulary(Protocol):
    def piece(self, token: int) -> bytes:
        """The bytes that `token` adds to an answer; none for a control token."""

    def is_end_of_generation(self, token: int) -> bool: ...


class TokenSampler(Protocol):
    """The sampler chain of one answer, with its history and random generator."""

    def accept_all(self, tokens: Sequence[int]) -> None:
        """The prompt's tokens, before the first draw."""

    def accept(self, token: int) -> None: ...

    def sample(self, logits: NDArray[np.float32]) -> int: ...


class TextPieces(Protocol):
    """Bytes in, whole UTF-8 text out, held back while a stop string may be forming."""

    def push(self, data: bytes) -> str:
        """The text that `data` releases. Once `stopped`, what came before the stop string and nothing after."""

    def finish(self) -> str:
        """What was still held back, when no stop string came; bytes of an incomplete character at the very end are
        dropped, as in llama-server."""

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
