"""What the engine needs of the rooms below: each as narrow as its use, so that any of them can be another make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bankml.sampling.logprobs import TokenProbs

if TYPE_CHECKING:
    from bankml.model.kv_cache import KVCells


class Cells(Protocol):
    """The K/V cache as memory: the cells of the first tokens, copied out and back."""

    @property
    def cell_bytes(self) -> int:
        """Bytes that one token's keys and values take."""

    @property
    def cache_type(self) -> str:
        """`f16` or `q8_0`."""

    def view(self, n: int) -> KVCells:
        """The first `n` cells themselves, not a copy."""

    def save(self, n: int) -> KVCells:
        """A copy of the first `n` cells."""

    def load(self, state: KVCells, n: int) -> None:
        """Puts the first `n` cells of `state` back."""


class ForwardPass(Cells, Protocol):
    """The model with its K/V cache of `n_ctx` positions."""

    @property
    def n_ctx(self) -> int: ...

    @property
    def logits(self) -> NDArray[np.float32]:
        """float32 `[n_vocab]`, of the last token of the last `forward` that asked for them; overwritten by the next."""

    def forward(
        self,
        tokens: Sequence[int],
        position: int,
        logits: bool,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        """Computes 1 to 512 tokens into the cache's cells from `position` on. `checkpoint` is called between layers and
        may raise: those cells are undefined then."""

    def close(self) -> None:
        """Lets go of the weights and the cache; the model is of no use afterwards, except to tell its `n_ctx`."""


class TokenPieces(Protocol):
    def piece(self, token: int) -> bytes:
        """The bytes that `token` adds to an answer; none for a control token."""

    def is_end_of_generation(self, token: int) -> bool: ...


class TokenSampler(Protocol):
    """The sampler chain of one answer, with its history and random generator."""

    def accept_all(self, tokens: Sequence[int]) -> None:
        """The prompt's tokens, before the first draw."""

    def accept(self, token: int) -> None: ...

    def sample(self, logits: NDArray[np.float32]) -> int: ...

    def probabilities(self, logits: NDArray[np.float32], token: int) -> TokenProbs | None:
        """What is to be reported with `token`, drawn last and from `logits`; None when nothing was asked for."""

    @property
    def seed(self) -> int | None:
        """The seed it draws with, the one chosen at random where none was asked for; None: it draws by no seed."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What it samples with, as a request's fields by llama-server's names."""


class TextPieces(Protocol):
    """Bytes in, whole UTF-8 text out, held back while a stop string may be forming."""

    def push(self, data: bytes) -> str:
        """The text that `data` releases. Once `stopped`, what came before the stop string and nothing after."""

    def finish(self) -> str:
        """What was still held back, when no stop string came."""

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""

    @property
    def stop_word(self) -> str | None:
        """That stop string."""

    @property
    def whole(self) -> bool:
        """Whether what was pushed so far does not end within a character."""

    @property
    def released(self) -> bytes:
        """The bytes of the text that the last `push` or `finish` returned."""
