"""Grammars that begin at a trigger, and thoughts, in which nothing triggers them."""

import re

import numpy as np
import pytest

from bankml.grammar.lazy import LazyMatcher, Triggers, triggers_of
from bankml.grammar.matcher import Grammar, vocabulary_tree
from bankml.grammar.sampler import GrammarSampler
from bankml.grammar.thought import ThoughtState, ThoughtTracker

PIECES = [b"<call>", b"<ca", b"ll>", b"x", b"y", b"<think>", b"</think>", b"\xc3", b"\xa9", b""]
CALL, CA, LL, X, Y, THINK, END_THINK, HALF, OTHER_HALF, END = range(10)
TREE = vocabulary_tree(PIECES, [END])
GRAMMAR = Grammar.parse('root ::= "<call>" "x"')


def matcher(**triggers):
    return LazyMatcher(GRAMMAR, TREE, Triggers(**triggers))


def test_a_word_that_is_one_token_is_a_token():
    made = triggers_of(["<call>", "<call>x"], [">$"], lambda text: [CALL] if text == "<call>" else [CALL, X])
    assert (made.tokens, made.words) == (frozenset({CALL}), (b"<call>x",))
    assert [one.pattern for one in made.patterns] == [b">$"]


def test_nothing_is_held_before_the_trigger():
    lazy = matcher(tokens=frozenset({CALL}))
    for token in (X, Y, CA, LL, END):
        assert lazy.allows(token)
        lazy.accept(token)
    assert not lazy.awake  # the text alone does not trigger it


def test_a_token_begins_the_grammar():
    lazy = matcher(tokens=frozenset({CALL}))
    lazy.accept(CALL)
    assert [token for token in range(10) if lazy.allows(token)] == [X]


@pytest.mark.parametrize(
    "triggers",
    [
        {"words": (b"<call>",)},
        {"patterns": (re.compile(b"y(<call>)"),)},
        {"patterns": (re.compile(b"(?:z(<))?<call>$"),)},
    ],
)
def test_words_and_patterns_are_looked_for_across_tokens(triggers):
    lazy = matcher(**triggers)
    for token in (X, Y, CA):
        lazy.accept(token)
    assert not lazy.awake
    lazy.accept(LL)
    assert lazy.awake
    assert not lazy.allows(Y)
    assert lazy.allows(X)
    masked = lazy.mask(np.zeros(10, np.float32))
    assert np.isfinite(masked).nonzero()[0].tolist() == [X]


class Chain:
    """Draws the token of the highest logit, the last of several."""

    seed = None
    settings = {}  # noqa: RUF012

    def accept_all(self, tokens): ...

    def accept(self, token): ...

    def sample(self, logits):
        return int(len(logits) - 1 - np.argmax(logits[::-1]))


def preferring(*tokens):
    logits = np.zeros(10, np.float32)
    for rank, token in enumerate(tokens):
        logits[token] = 10 - rank
    return logits


def test_a_thought_does_not_trigger_but_its_end_may():
    tracker = ThoughtTracker([THINK], [[END_THINK], [CALL]])
    sampler = GrammarSampler(Chain(), matcher(tokens=frozenset({CALL})), tracker, lazy=True)
    for token in (X, THINK, Y):
        assert sampler.sample(preferring(token)) == token
        sampler.accept(token)
    sampler.accept(CALL)  # ends the thought, and begins a call
    assert tracker.ended_with == (CALL,)
    assert sampler.sample(preferring(Y, X)) == X
    assert sampler.resampled == 1


def test_a_thought_that_is_ended_is_behind():
    tracker = ThoughtTracker([THINK], [[END_THINK]])
    sampler = GrammarSampler(Chain(), matcher(tokens=frozenset({CALL})), tracker, lazy=True)
    for token in (THINK, CALL, END_THINK):  # the call is a thought
        sampler.accept(token)
    assert sampler.sample(preferring(Y)) == Y
    sampler.accept(CALL)
    assert sampler.sample(preferring(Y, X)) == X


def test_a_budget_forces_the_end():
    complete = lambda token: token != HALF  # noqa: E731
    tracker = ThoughtTracker([THINK], [[END_THINK]], [Y, END_THINK], 2, complete)
    sampler, said = GrammarSampler(Chain(), None, tracker), []
    wanted = iter([THINK, X, HALF, OTHER_HALF, X, X, X, X])
    for _ in range(8):
        token = sampler.sample(preferring(next(wanted)))
        sampler.accept(token)
        said.append(token)
    assert said == [THINK, X, HALF, OTHER_HALF, Y, END_THINK, X, X]
    assert tracker.state is ThoughtState.ENDED


def test_no_budget_at_all_ends_a_thought_at_once():
    tracker = ThoughtTracker([THINK], [[END_THINK]], [END_THINK], 0)
    tracker.accept(THINK)
    assert tracker.forced_token == END_THINK
    tracker.accept(END_THINK)
    assert (tracker.state, tracker.forced_token) == (ThoughtState.ENDED, None)
