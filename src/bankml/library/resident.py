"""A loaded model with everything that answering needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bankml.answers.describe import describe, template_thinks
from bankml.answers.format import AnswerFormat
from bankml.answers.message_starts import message_starts, user_starts
from bankml.answers.request import FormatRequest
from bankml.engine.engine import Engine
from bankml.engine.parts import TextPieces, TokenPieces, TokenSampler
from bankml.errors import RequestError
from bankml.grammar.constraint import NO_CONSTRAINT, Constraint, ConstraintSpec
from bankml.grammar.lazy import LazyMatcher, triggers_of
from bankml.grammar.matcher import Grammar, Matcher, VocabularyTree, vocabulary_tree
from bankml.grammar.sampler import GrammarSampler, TokenMatcher
from bankml.grammar.thought import ThoughtTracker
from bankml.library.reference import PinnedFile
from bankml.library.request import UNLIMITED, ThoughtBudget
from bankml.library.supported import names_pooling
from bankml.model.shape import Pooling
from bankml.receipt.receipt import Provenance
from bankml.receipt.replay_record import Arithmetic
from bankml.sampling.chain import SamplerChain
from bankml.sampling.overrides import SamplingOverrides
from bankml.sampling.parameters import SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary
from bankml.text.messages import Conversation
from bankml.text.pieces import TextStream, whole_size
from bankml.text.special_content import ContentSpecial, Segment, marked, refuse_special, segments, unmarked
from bankml.text.template import ChatTemplate
from bankml.text.vocabulary import FillIn, fill_in_tokens

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


RERANK_TEMPLATE = "tokenizer.chat_template.rerank"


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
    def control_texts(self) -> Sequence[str]:
        """The texts that are tokenized as control tokens with `parse_special`."""

    @property
    def end_of_generation(self) -> frozenset[int]:
        """The tokens that end an answer."""

    @property
    def longest(self) -> int:
        """Bytes of the longest token."""

    def encode(self, text: str, parse_special: bool = True, add_special: bool = False) -> list[int]: ...

    def text(self, tokens: Sequence[int]) -> str:
        """The text of a prompt's tokens, control tokens spelled out."""

    @property
    def begin(self) -> list[int]:
        """What texts of the vocabulary begin with: the beginning-of-sequence token, or nothing."""

    def pair(self, first: str, second: str) -> list[int]:
        """Two texts as one input."""

    def added(self, tokens: list[int]) -> list[int]:
        """`tokens` with what texts of the vocabulary begin and end with."""

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

    `defaults` are the model's own sampling parameters. `reasoning`: a model that can reason does, unless a request says
    otherwise. `arithmetic` is what its receipts say of its bits; None: answers cannot be replayed. `embeds`: it serves
    embeddings, by `pooling`; `generates`: it serves chats and completions.
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
        reasoning: bool = False,
        content_special: ContentSpecial = "parse",
        arithmetic: Arithmetic | None = None,
        embeds: bool = False,
        pooling: Pooling = "none",
        generates: bool = True,
    ) -> None:
        self.source = source
        self.verified = verified
        self.provenance = provenance
        self.engine = engine
        self.tokens = tokens
        self.template = template
        self.defaults = defaults
        self.reasoning = reasoning
        self.content_special = content_special
        self.arithmetic = arithmetic
        self.embeds = embeds
        self.pooling = pooling
        self.generates = generates
        self.moment: float | None = None
        """What templates see as the present, in seconds since the epoch; None: the clock's time."""

    @cached_property
    def made_for_embeddings(self) -> bool:
        """Whether its header names a pooling, whatever pooling is in use."""
        return names_pooling(self.verified.header)

    def require_generating(self) -> None:
        """Raises RequestError for a model that gives embeddings alone."""
        if not self.generates:
            what = "it computes embeddings: POST /v1/embeddings, or /v1/rerank where it has a classifier"
            raise RequestError(f"{self.name} does not generate text; {what}")

    # ---- a request's parts, for this model

    def answer_format(self, conversation: Conversation, spec: ConstraintSpec = NO_CONSTRAINT) -> AnswerFormat:
        """The prompt of a conversation, and how its answer is parsed and constrained. Raises RequestError where the
        template rejects the conversation, for schemas, and for texts of control tokens where they are refused."""
        if conversation.enable_thinking is None:
            conversation = replace(conversation, enable_thinking=self.reasoning and self.thinks)
        if self.content_special == "refuse":
            refuse_special(conversation.messages, self.tokens.control_texts)
        if self.content_special != "escape":
            return self._described(conversation, spec)
        messages, marks = marked(conversation.messages, self.tokens.control_texts)
        form = self._described(replace(conversation, messages=messages), spec)
        plain, opening = unmarked(form.prompt, marks), unmarked(form.opening, marks)
        return replace(form, prompt=plain, opening=opening, segments=tuple(segments(form.prompt, marks)))

    def _described(self, conversation: Conversation, spec: ConstraintSpec) -> AnswerFormat:
        return describe(FormatRequest(self.template, conversation, spec.schema, spec.strict, conversation.now))

    def tokenize(self, form: AnswerFormat) -> list[int]:
        """The tokens of a prompt, with what texts of the vocabulary begin and end with."""
        parts = form.segments or (Segment(form.prompt),)
        encode = self.tokens.encode
        return self.tokens.added([one for part in parts for one in encode(part.text, parse_special=not part.plain)])

    def pair(self, query: str, document: str) -> list[int]:
        """The tokens of a question and a document that a classifier scores: by the file's own template, or by the
        vocabulary's rule for pairs."""
        template = self.metadata.get(RERANK_TEMPLATE)
        if isinstance(template, str):
            return self.tokens.encode(template.replace("{query}", query).replace("{document}", document))
        return self.tokens.pair(query, document)

    def user_starts(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The positions in a prompt at which a user's message begins, where the model's sliding window needs them."""
        if not self.engine.windowed:
            return ()
        starts = message_starts(self.template)
        return user_starts(tokens, *(self.tokens.encode(text) for text in (starts.assistant, starts.user)))

    @cached_property
    def thinks(self) -> bool:
        """The template is one of a model that reasons."""
        return template_thinks(self.template)

    def sampler(self, overrides: SamplingOverrides) -> TokenSampler:
        """A sampler chain for one answer. Raises RequestError for invalid values."""
        return SamplerChain(overrides.over(self.defaults, self._vocabulary), self._vocabulary)

    def text_stream(self, stop: Sequence[str], *, chat: bool = False, begun: bool = False) -> TextPieces:
        """Token pieces to the text of one answer that ends at one of the strings `stop` (text.pieces.TextStream)."""
        return TextStream(stop, chat, begun)

    def with_grammar(self, sampler: TokenSampler, constraint: Constraint) -> TokenSampler:
        """`sampler`, constrained to a grammar from the first token on. Raises RequestError for one that does not
        parse."""
        return GrammarSampler(
            sampler, Matcher(self._parsed(constraint.grammar, constraint.of_schema), self._grammar_tree)
        )

    def with_format(self, sampler: TokenSampler, form: AnswerFormat, budget: ThoughtBudget) -> TokenSampler:
        """`sampler`, constrained to the grammar of an answer's format, and its thoughts to a budget. Raises
        RequestError for a grammar that the beginning of a continued answer breaks."""
        opening = opening_tokens(self.tokens, form.opening)
        matcher: TokenMatcher | None = None
        if form.lazy:
            words = [one.value for one in form.triggers if one.kind == "word"]
            patterns = [one.value for one in form.triggers if one.kind == "pattern"]
            triggers = triggers_of(words, patterns, self.tokens.encode)
            matcher = LazyMatcher(self._parsed(form.grammar, True), self._grammar_tree, triggers)
        elif form.grammar:
            matcher = Matcher(self._parsed(form.grammar, True), self._grammar_tree)
            for token in opening:
                matcher.accept(token)
        thought = None
        follows = form.lazy or budget.tokens != UNLIMITED or budget.controlled
        if form.thinking_start and form.thinking_ends and follows:
            thought = thought_tracker(self.tokens, form, budget)
            for token in opening:
                thought.accept(token)
        if matcher is None and thought is None:
            return sampler
        return GrammarSampler(sampler, matcher, thought, lazy=form.lazy)

    def preserved(self, form: AnswerFormat) -> frozenset[int]:
        """The control tokens that have a text in an answer of this format."""
        ids = map(self.tokens.encode, form.preserved)
        return frozenset(one[0] for one in ids if len(one) == 1)

    def _parsed(self, grammar: str, made: bool) -> Grammar:
        """`made`: the grammar was made here rather than sent."""
        try:
            return Grammar.parse(grammar, tokenize=self.tokens.encode)
        except RequestError as error:
            if not made:
                raise
            raise RequestError(f"the grammar made of the JSON schema cannot be used: {error}") from None

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

    @cached_property
    def fill_in(self) -> FillIn:
        """The tokens for filling a gap in a text."""
        return fill_in_tokens(self.metadata)

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


def opening_tokens(tokens: Tokens, opening: str) -> list[int]:
    """The tokens of the end of a prompt that belongs to the answer. Some tokenizers put a space before the first, which
    is then left out."""
    ids = tokens.encode(opening)
    if ids and tokens.spelling(ids[0])[:1].isspace() and not opening[:1].isspace():
        return ids[1:]
    return ids


def thought_tracker(tokens: Tokens, form: AnswerFormat, budget: ThoughtBudget) -> ThoughtTracker:
    """Follows the thoughts of an answer of this format."""
    ends = [tokens.encode(one) for one in form.thinking_ends]
    forced = [*(tokens.encode(budget.message) if budget.message else ()), *ends[0]]

    def is_complete(token: int) -> bool:
        piece = tokens.piece(token)
        return whole_size(piece) == len(piece)

    return ThoughtTracker(tokens.encode(form.thinking_start), ends, forced, budget.tokens, is_complete)
