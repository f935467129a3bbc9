"""A grammar that constrains an answer from a trigger on, as b11192's lazy grammars do (src/llama-grammar.cpp)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bankml.grammar.matcher import Grammar, Matcher, VocabularyTree

WINDOW = 512
"""Bytes before a token in which a pattern may begin; what models write between a pattern's parts is far shorter."""


@dataclass(frozen=True)
class Triggers:
    """`tokens` awaken the grammar, which begins with them; so do `words` and `patterns` in the text since the start.
    Of a pattern, the grammar begins with the first group that matched, else with the match."""

    tokens: frozenset[int] = frozenset()
    words: tuple[bytes, ...] = ()
    patterns: tuple[re.Pattern[bytes], ...] = ()


def triggers_of(words: Sequence[str], patterns: Sequence[str], encode: Callable[[str], list[int]]) -> Triggers:
    """A word that is one token is a token."""
    tokens, texts = set(), []
    for word in words:
        ids = encode(word)
        if len(ids) == 1:
            tokens.add(ids[0])
        else:
            texts.append(word.encode())
    return Triggers(frozenset(tokens), tuple(texts), tuple(re.compile(one.encode()) for one in patterns))


class LazyMatcher:
    """Allows every token until a trigger; then a Matcher of the grammar, which has taken what began with it."""

    def __init__(self, grammar: Grammar, vocabulary: VocabularyTree, triggers: Triggers) -> None:
        self._grammar = grammar
        self._vocabulary = vocabulary
        self._triggers = triggers
        self._text = bytearray()
        self._matcher: Matcher | None = None

    @property
    def awake(self) -> bool:
        return self._matcher is not None

    def allows(self, token: int) -> bool:
        return self._matcher is None or self._matcher.allows(token)

    def mask(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        return logits if self._matcher is None else self._matcher.mask(logits)

    def accept(self, token: int) -> None:
        """Raises RequestError, in llama-server's words, if nothing can follow."""
        if self._matcher is not None:
            self._matcher.accept(token)
            return
        if token in self._triggers.tokens:
            self._awaken().accept(token)
            return
        piece = self._vocabulary.piece(token)
        self._text += piece
        start = self._found(len(piece))
        if start is not None:
            self._awaken().accept_text(bytes(self._text[start:]))
            self._text.clear()

    def _awaken(self) -> Matcher:
        self._matcher = Matcher(self._grammar, self._vocabulary)
        return self._matcher

    def _found(self, added: int) -> int | None:
        """Where the grammar begins in the text, None where nothing triggers it yet."""
        text = self._text
        for word in self._triggers.words:
            at = text.find(word, max(0, len(text) - added - len(word) + 1))
            if at >= 0:
                return at
        for pattern in self._triggers.patterns:
            found = pattern.search(text, max(0, len(text) - added - WINDOW))
            if found:
                groups = [i for i in range(1, pattern.groups + 1) if found.end(i) > found.start(i) >= 0]
                return found.start(groups[0]) if groups else found.start()
        return None
