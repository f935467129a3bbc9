"""Matching a text against a grammar: which tokens are allowed next, and the logits with the others masked."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bankml import _native
from bankml.errors import RequestError
from bankml.grammar import gbnf
from bankml.grammar.gbnf_source import GbnfSource

VocabularyTree = _native.GrammarVocabulary
"""A model's vocabulary as a prefix tree, made once a model; see `vocabulary_tree`."""


def vocabulary_tree(pieces: Sequence[bytes], end_of_generation: Sequence[int]) -> VocabularyTree:
    """Made of the bytes of every token, control tokens' texts included (a tokenizer's `spelling`), and the ids of the
    end-of-generation tokens."""
    return _native.GrammarVocabulary(list(pieces), list(end_of_generation))


class Grammar:
    """A parsed grammar; any number of matchers can share it."""

    def __init__(self, program: _native.GrammarProgram) -> None:
        self.program = program

    @classmethod
    def parse(cls, text: str, root: str = "root", tokenize: gbnf.Tokenize | None = None) -> "Grammar":
        """Parses GBNF; see gbnf.parse. Raises RequestError, with line and column, for a text that llama.cpp refuses."""
        source = GbnfSource(text)
        rules = gbnf.parse(source, root, tokenize)
        program = _native.GrammarProgram(rules.kinds, rules.values, rules.starts, rules.root)
        if program.left_recursive >= 0:
            place = rules.places[program.left_recursive]
            raise source.refuse("unsupported grammar, left recursion: this rule can begin with itself", place)
        return cls(program)


class Matcher:
    """One text. Serves one generation, on one thread at a time.

    Every method raises RequestError if the grammar is so ambiguous that its states exceed the limit.
    """

    def __init__(self, grammar: Grammar, vocabulary: VocabularyTree) -> None:
        self._vocabulary = vocabulary
        try:
            self._native = _native.GrammarMatcher(grammar.program, vocabulary)
        except ValueError as error:
            raise RequestError(f"Field 'grammar': {error}") from None

    @property
    def complete(self) -> bool:
        """Whether the text may end here."""
        return self._native.complete

    def allows(self, token: int) -> bool:
        """Whether `token` is allowed next; an end-of-generation token is when the grammar is complete."""
        try:
            return self._native.allows(token)
        except ValueError as error:
            raise RequestError(f"Field 'grammar': {error}") from None

    def mask(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """A copy of `logits`, float32 [n_vocab], in which every forbidden token is -inf.

        Raises RequestError if all are: the vocabulary cannot spell what the grammar requires.
        """
        out = np.empty_like(logits)
        try:
            allowed = self._native.mask(logits, out)
        except ValueError as error:
            raise RequestError(f"Field 'grammar': {error}") from None
        if not allowed:
            raise RequestError("Field 'grammar': no token of this model can continue the grammar")
        return out

    def accept(self, token: int) -> None:
        """`token` is now part of the text. Raises RequestError, in llama-server's words, if nothing can follow."""
        try:
            taken = self._native.accept(token)
        except ValueError as error:
            raise RequestError(f"Field 'grammar': {error}") from None
        if not taken:
            piece = self._vocabulary.piece(token).decode(errors="replace")
            raise RequestError(f"Unexpected empty grammar stack after accepting piece: {piece} ({token})")

    def accept_text(self, text: bytes) -> None:
        """The same for a text, whatever its tokens."""
        try:
            taken = self._native.accept_text(text)
        except ValueError as error:
            raise RequestError(f"Field 'grammar': {error}") from None
        if not taken:
            shown = text.decode(errors="replace")
            raise RequestError(f"Unexpected empty grammar stack after accepting piece: {shown}")
