"""What the engine needs of other rooms, as narrow protocols, so that each can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bankml.model.span import Span
from bankml.sampling.logprobs import TokenProbs

if TYPE_CHECKING:
    from bankml.model.kv_cache import KVCells, WindowState

Logits = NDArray[np.float32]

Vectors = NDArray[np.float32]
"""[1, width] of an input, or one row a token of it."""

ScoredRows = Callable[[int, Logits], None]
"""Takes the logits of tokens of a span, float32 [some, n_vocab], and the position of the first of them."""


class Cells(Protocol):
    """The K/V cells of one sequence as memory: those of the first tokens, copied out and back."""

    @property
    def cell_bytes(self) -> int:
        """Bytes that one token's keys and values take."""

    @property
    def cache_type(self) -> str:
        """The type of keys and values, such as `f16` or `q8_0`."""

    @property
    def window(self) -> int:
        """Positions that layers with a sliding window see; 0: there are none."""

    @property
    def window_first(self) -> int:
        """The lowest position whose cells those layers have; -1: none."""

    def window_in_order(self, n: int) -> bool:
        """Whether they have the cells of the first `n` tokens as if nothing else had been computed before."""

    def truncate_window(self, n: int) -> None:
        """Drops what those layers have beyond the first `n` positions."""

    def save_window(self) -> WindowState | None:
        """A copy of what those layers still see; None without such layers."""

    def load_window(self, state: WindowState) -> None:
        """Puts the copy back."""

    def copy_from(self, other: Any, n: int) -> None:
        """Copies the first `n` cells of another sequence of the model."""

    def view(self, n: int) -> KVCells:
        """The first `n` cells, not copied."""

    def save(self, n: int) -> KVCells:
        """A copy of the first `n` cells."""

    def load(self, state: KVCells, n: int) -> None:
        """Restores the first `n` cells of `state`."""

    def release(self, n: int) -> None:
        """Returns the memory of all but the first `n` cells, whose contents are lost, to the system."""


class EmbeddingPass(Protocol):
    """What the order of an embedding follows from."""

    @property
    def n_ctx(self) -> int: ...

    @property
    def longest(self) -> int:
        """The most tokens of one micro-batch of an input."""

    @property
    def embeds_whole(self) -> bool:
        """Whether an input has to be computed as one micro-batch."""

    @property
    def generates(self) -> bool:
        """Whether it has a K/V cache, and gives logits."""

    def embed(self, span: Span, checkpoint: Callable[[], None] = lambda: None) -> Vectors:
        """Computes one span and pools the states of its tokens."""


class ForwardPass(EmbeddingPass, Protocol):
    """The model. Its cells are made one sequence at a time."""

    @property
    def n_vocab(self) -> int: ...

    def new_cells(self) -> Cells:
        """Empty cells of `n_ctx` positions for another sequence; they take memory as they are filled."""

    def forward(
        self, spans: Sequence[Span], logits: bool, checkpoint: Callable[[], None] = lambda: None
    ) -> Logits | None:
        """Computes one span of 1 to 512 tokens, or several of one token each, of different sequences.

        With `logits`: float32 `[len(spans), n_vocab]` of each span's last token. They are overwritten by the next call
        with as many tokens a span, one or several. Each span's bits are those that it has alone. `checkpoint` is called
        between the operations of a span of several tokens. It may compute spans of one token of other sequences by the
        same method, and may raise: the span's cells are undefined then.
        """

    def score(self, span: Span, rows: ScoredRows, checkpoint: Callable[[], None] = lambda: None) -> None:
        """Computes one span, and gives `rows` the logits of every token."""

    def close(self) -> None:
        """Frees the weights; afterwards only `n_ctx` may be read."""


class TokenPieces(Protocol):
    def piece(self, token: int) -> bytes:
        """The bytes that `token` adds to an answer; none for a control token."""

    def spelling(self, token: int) -> bytes:
        """The bytes that `token` stands for, a control token's too."""

    def is_end_of_generation(self, token: int) -> bool: ...


class TokenSampler(Protocol):
    """The sampler chain of one answer, with its history and random generator."""

    def accept_all(self, tokens: Sequence[int]) -> None:
        """The prompt's tokens, before the first token is sampled."""

    def accept(self, token: int) -> None: ...

    def sample(self, logits: NDArray[np.float32]) -> int: ...

    def probabilities(self, logits: NDArray[np.float32], token: int) -> TokenProbs | None:
        """What to report with `token`, the last one sampled, from `logits`; None if nothing was requested."""

    @property
    def seed(self) -> int | None:
        """The seed it draws with, the one chosen at random where none was asked for; None: it draws by no seed."""

    @property
    def settings(self) -> Mapping[str, object]:
        """The parameters as a request's fields, by llama-server's names."""


class TextPieces(Protocol):
    """Bytes in, complete UTF-8 out, withheld while a stop string may be forming."""

    def push(self, data: bytes) -> str:
        """The text that `data` releases. When `stopped`, only what came before the stop string."""

    def finish(self) -> str:
        """The text that was still withheld, if no stop string was completed."""

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""

    @property
    def stop_word(self) -> str | None:
        """That stop string."""

    @property
    def at_boundary(self) -> bool:
        """True if the bytes pushed so far do not end inside a character."""

    @property
    def released(self) -> bytes:
        """The bytes of the text that the last `push` or `finish` returned."""
