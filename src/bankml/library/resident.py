"""A loaded model with everything that answering needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bankml.engine.completion import Engine
from bankml.engine.parts import TextPieces, TokenPieces, TokenSampler
from bankml.errors import RequestError
from bankml.grammar.constraint import Constraint, ConstraintSpec, chat_constraint
from bankml.grammar.matcher import Grammar, Matcher, VocabularyTree, vocabulary_tree
from bankml.grammar.sampler import GrammarSampler
from bankml.library.reference import PinnedFile
from bankml.receipt.receipt import Provenance
from bankml.sampling.chain import SamplerChain
from bankml.sampling.overrides import SamplingOverrides
from bankml.sampling.parameters import SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary
from bankml.text.messages import Conversation
from bankml.text.pieces import TextStream
from bankml.text.template import ChatTemplate, RenderedPrompt

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


class Tokens(TokenPieces, Protocol):
    """The tokenizer: what the engine needs of it, and text to tokens."""

    @property
    def n_vocab(self) -> int: ...

    @property
    def bos_text(self) -> str:
        """The text of the beginning-of-sequence token, "" without one."""

    @property
    def eos_text(self) -> str: ...

    @property
    def end_of_generation(self) -> frozenset[int]:
        """The tokens that end an answer."""

    @property
    def longest(self) -> int:
        """Bytes of the longest token."""

    def encode(self, text: str, parse_special: bool = True) -> list[int]: ...

    def spelling(self, token: int) -> bytes:
        """The text of `token`, also of a control token."""


@dataclass(frozen=True)
class Opened:
    """What `GET /bankml` reports of a model that is, or was, loaded; it has no weights.

    `path` and `fork` are the paths of its file and its record, `verified_at` is in seconds since the epoch, `n_ctx` the
    context in tokens.
    """

    source: PinnedFile
    provenance: Provenance
    path: str
    fork: str
    verified_at: float
    n_ctx: int


class Resident:
    """One loaded model: a verified file, its tokenizer, template and sampling defaults, and the engine that computes.

    `defaults` are the model's own sampling parameters.
    """

    def __init__(
        self,
        source: PinnedFile,
        verified: Verified,
        provenance: Provenance,
        engine: Engine,
        tokens: Tokens,
        template: ChatTemplate,
        defaults: SamplingParams,
    ) -> None:
        self.source = source
        self.verified = verified
        self.provenance = provenance
        self.engine = engine
        self.tokens = tokens
        self.template = template
        self.defaults = defaults

    # ---- a request's parts, for this model

    def render(self, conversation: Conversation, *, for_grammar: bool = False) -> RenderedPrompt:
        """The prompt of a conversation (text.template). Raises RequestError if the template rejects it."""
        return self.template.prompt(conversation, for_grammar=for_grammar)

    def sampler(self, overrides: SamplingOverrides) -> TokenSampler:
        """A sampler chain for one answer. Raises RequestError for invalid values."""
        return SamplerChain(overrides.over(self.defaults, self._vocabulary), self._vocabulary)

    def text_stream(self, stop: Sequence[str], *, chat: bool = False, begun: bool = False) -> TextPieces:
        """Token pieces to the text of one answer that ends at one of the strings `stop` (text.pieces.TextStream)."""
        return TextStream(stop, chat, begun)

    def chat_constraint(self, spec: ConstraintSpec, prompt: RenderedPrompt) -> Constraint:
        """The constraint of an answer to `prompt`, rendered for a grammar. Raises RequestError."""
        template = self.template
        return chat_constraint(spec, template.source, template.reasoning, prompt.generation_prompt, prompt.opening)

    def with_grammar(self, sampler: TokenSampler, constraint: Constraint) -> TokenSampler:
        """`sampler`, constrained by a grammar that has accepted the constraint's opening. Raises RequestError for a
        grammar that does not parse, or that does not accept the prefill."""
        try:
            matcher = Matcher(Grammar.parse(constraint.grammar, tokenize=self.tokens.encode), self._grammar_tree)
        except RequestError as error:
            if not constraint.of_schema:
                raise
            raise RequestError(f"the grammar of the JSON schema cannot be used: {error}") from None
        for token in self.tokens.encode(constraint.opening):
            matcher.accept(token)
        return GrammarSampler(sampler, matcher)

    @cached_property
    def _vocabulary(self) -> SamplerVocabulary:
        tokens = self.tokens
        return SamplerVocabulary(
            tokens.n_vocab,
            lambda text: tokens.encode(text, parse_special=False),
            lambda: [tokens.spelling(token) for token in range(tokens.n_vocab)],
            sorted(tokens.end_of_generation),
        )

    @cached_property
    def _grammar_tree(self) -> VocabularyTree:
        """Made for the first constrained answer."""
        return grammar_tree(self.tokens)

    # ---- properties

    @property
    def n_ctx(self) -> int:
        return self.engine.model.n_ctx

    @property
    def path(self) -> Path:
        return Path(self.verified.path)

    @property
    def name(self) -> str:
        """The file's stem in lower case."""
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
        """Raises ModelChanged if the file's identity has changed since it was verified. Called for every answer."""
        self.verified.check_unchanged()

    def close(self) -> None:
        """Frees the weights and all KV cells. Tokenizer, template and verification data remain usable."""
        self.engine.close()


def grammar_tree(tokens: Tokens) -> VocabularyTree:
    """The vocabulary in the form that grammar matchers use."""
    pieces = [tokens.spelling(token) for token in range(tokens.n_vocab)]
    return vocabulary_tree(pieces, sorted(tokens.end_of_generation))
