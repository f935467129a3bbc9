"""A model that is loaded, and all that is needed to answer with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bankml.engine.completion import Engine
from bankml.engine.parts import TextPieces, TokenPieces, TokenSampler
from bankml.grammar.constraint import Constraint
from bankml.library.reference import PinnedFile
from bankml.receipt.receipt import Provenance

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


class Prompt(Protocol):
    """What the model continues, and the beginning of the answer that the conversation brought along (often none)."""

    @property
    def text(self) -> str: ...

    @property
    def prefill(self) -> str: ...


class Sampling(Protocol):
    """Builds the chain that a request's body asks for; a RequestError says what cannot be.

    `chat`: by the rules of /v1/chat/completions for logprobs and top_logprobs, or by those of /completion.
    """

    def __call__(self, body: Mapping[str, Any], chat: bool = True) -> TokenSampler: ...


class Pieces(Protocol):
    """Makes the text of one answer, with the strings that end it.

    `chat`: bytes that are no UTF-8 shown as llama-server shows them in a chat, or as it does on /completion. `begun`:
    the conversation brought along what the answer begins with.
    """

    def __call__(self, stop_strings: Sequence[str], chat: bool = False, begun: bool = False) -> TextPieces: ...


class Tokens(TokenPieces, Protocol):
    """The tokenizer: what the engine needs of it, and text to tokens."""

    @property
    def n_vocab(self) -> int: ...

    @property
    def longest(self) -> int:
        """Bytes of the longest token."""

    def encode(self, text: str, parse_special: bool = True) -> list[int]: ...

    def spelling(self, token: int) -> bytes:
        """What `token` stands for, control tokens included."""


@dataclass(frozen=True)
class Opened:
    """What is told of a model that is, or was, resident: none of its words, and no weight.

    `path` and `fork` are where its file and its record are, `verified_at` is in seconds since the epoch, `n_ctx` the
    tokens of its context.
    """

    source: PinnedFile
    provenance: Provenance
    path: str
    fork: str
    verified_at: float
    n_ctx: int


@dataclass(frozen=True)
class Resident:
    """One loaded model and all that is needed to answer with it.

    `prompt` makes the prompt of a chat request's body; a RequestError says what is wrong with its messages. `sampler`
    builds the chain that such a body asks for, over the model's own defaults; a RequestError says what cannot be.
    `sampling_defaults` are the fields of a request that asks for nothing, by llama-server's names. `bos` and `eos`
    are the texts of those tokens, empty where there is none. `constraint` is what a chat request's body holds its
    answer to, and `held` a sampler that keeps to it or to what a completion request asks for; a RequestError says what
    is wrong with a schema or a grammar.
    """

    source: PinnedFile
    verified: Verified
    provenance: Provenance
    engine: Engine
    tokens: Tokens
    template: str
    bos: str
    eos: str
    prompt: Callable[[Mapping[str, Any]], Prompt]
    sampler: Sampling
    text_pieces: Pieces
    sampling_defaults: Mapping[str, object]
    constraint: Callable[[Mapping[str, Any]], Constraint | None] = lambda body: None
    held: Callable[[TokenSampler, Constraint], TokenSampler] = lambda sampler, constraint: sampler

    @property
    def n_ctx(self) -> int:
        return self.engine.model.n_ctx

    @property
    def path(self) -> Path:
        return Path(self.verified.path)

    @property
    def name(self) -> str:
        """The file's stem, lower-cased."""
        return self.source.name

    @property
    def file(self) -> str:
        """The file's name, by which it was verified."""
        return self.source.file

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The header's key-value pairs."""
        metadata: Mapping[str, Any] = self.verified.header.metadata
        return metadata

    @property
    def opened(self) -> Opened:
        verified = self.verified
        return Opened(self.source, self.provenance, verified.path, verified.fork_path, verified.verified_at, self.n_ctx)

    def check_unchanged(self) -> None:
        """Raises ModelChanged when the file is no longer the one that was verified. Asked before every answer."""
        self.verified.check_unchanged()

    def close(self) -> None:
        """Lets go of the weights and of all K/V cells. Its words remain: tokenizer, template, what was verified."""
        self.engine.close()
