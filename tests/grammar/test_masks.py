"""The native masks against the plain matcher, token by token, on random grammars and a small, nasty vocabulary."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bankml import _native
from bankml.errors import RequestError
from bankml.grammar import gbnf
from bankml.grammar.gbnf_source import GbnfSource
from bankml.grammar.matcher import Grammar, Matcher, vocabulary_tree
from tests.grammar.cases import END, PIECES, RECORDED
from tests.grammar.model_matcher import ModelMatcher, TooLarge

TREE = vocabulary_tree(PIECES, [END])
LOGITS = np.linspace(-4, 4, len(PIECES)).astype(np.float32)


def both(text, steps=10_000):
    grammar = Grammar.parse(text, tokenize=lambda t: [PIECES.index(t.encode())] if t.encode() in PIECES else [])
    rules = gbnf.parse(GbnfSource(text), tokenize=lambda t: [PIECES.index(t.encode())] if t.encode() in PIECES else [])
    return Matcher(grammar, TREE), ModelMatcher(rules, PIECES, [END], steps)


def compare(ours, plain):
    allowed = [plain.allows(token) for token in range(len(PIECES))]
    assert ours.complete == plain.complete
    assert [ours.allows(token) for token in range(len(PIECES))] == allowed
    if any(allowed):
        assert np.array_equal(ours.mask(LOGITS), np.where(allowed, LOGITS, -np.inf).astype(np.float32))
    else:
        with pytest.raises(RequestError, match="no token of this model"):
            ours.mask(LOGITS)
    return np.flatnonzero(allowed)


def walk(text, choose, n_steps, plain_steps=10_000):
    ours, plain = both(text, plain_steps)
    for _ in range(n_steps):
        choices = [token for token in compare(ours, plain) if token != END]
        if not choices:
            return
        token = int(choose(choices))
        if not plain.accept(token):
            with pytest.raises(RequestError, match="Unexpected empty grammar stack after accepting piece"):
                ours.accept(token)
            return
        ours.accept(token)


TERMINALS = st.sampled_from(
    [
        *('"a"', '"ab"', '"é"', '"日本"', '"x"', '""', '"\\u65e5"', "."),
        *("[a-c]", "[^a]", "[^é]", "[^\\x00-\\x7F]", "[日-本]", "[z-a]", "[本-日]", "[]", "[^]", '[^"\\\\]', "[0-9]"),
        *("[\\U0001F600-\\U0001F64F]", "<[6]>", "!<[6]>", "!<[30]>", "<|im_start|>"),
    ]
)
NAMES = ("root", "a", "b", "c")


@st.composite
def grammars(draw):
    def item(depth):
        kind = draw(st.integers(0, 9))
        if kind < 5 or depth > 2:
            text = draw(TERMINALS)
        elif kind < 7:
            text = draw(st.sampled_from(NAMES))
        else:
            text = f"({alternatives(depth + 1)})"
        repeat = draw(st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,}", "{0,3}", "{2,3}"]))
        return text + ("" if text in ("[]", "[^]", '""') else repeat)

    def alternatives(depth=0):
        return " | ".join(
            " ".join(item(depth) for _ in range(draw(st.integers(0, 3)))) or '""'
            for _ in range(draw(st.integers(1, 3)))
        )

    return "\n".join(f"{name} ::= {alternatives()}" for name in NAMES)


@given(grammars(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_grammars(text, random):
    try:
        Grammar.parse(text, tokenize=lambda t: [2])
    except RequestError as error:
        assume("left recursion" not in error.message and "preceding item" not in error.message)
        raise
    try:
        walk(text, random.choice, 8)
    except TooLarge:
        assume(False)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_grammars(name):
    random = np.random.default_rng(len(name))
    for _ in range(2):
        walk(RECORDED[name], random.choice, 8, 10_000_000)


def test_a_mask_is_remembered_and_the_logits_stay():
    matcher, _ = both('root ::= ("a" | "b")*')
    logits = LOGITS.copy()
    first = matcher.mask(logits)
    matcher.accept(PIECES.index(b"a"))
    assert np.array_equal(matcher.mask(logits), first)
    assert np.array_equal(logits, LOGITS)


def test_the_native_module_checks_what_it_is_given():
    one, two = np.array([3, 0], np.uint8), np.array([97, 0], np.uint32)
    good = _native.GrammarProgram(one, two, np.array([0], np.uint32), 0)
    matcher = _native.GrammarMatcher(good, TREE)
    with pytest.raises(ValueError):
        matcher.mask(LOGITS, np.empty(3, np.float32))
    for call in (matcher.allows, matcher.accept, TREE.piece):
        with pytest.raises(IndexError):
            call(len(PIECES))
    with pytest.raises(ValueError):
        vocabulary_tree([b"a"], [1])
    for kinds, values, starts, root in (
        ([3], [97], [0], 0),  # no end
        ([3, 0], [97], [0], 0),
        ([3, 0], [97, 0], [2], 0),
        ([3, 0], [97, 0], [0], 1),
        ([5, 0], [97, 0], [0], 0),  # the upper end of no range
        ([2, 0], [1, 0], [0], 0),  # a rule that is not there
        ([17, 0], [0, 0], [0], 0),
    ):
        with pytest.raises(ValueError):
            _native.GrammarProgram(
                np.array(kinds, np.uint8), np.array(values, np.uint32), np.array(starts, np.uint32), root
            )
    recursive = _native.GrammarProgram(np.array([2, 0], np.uint8), np.zeros(2, np.uint32), np.zeros(1, np.uint32), 0)
    assert recursive.left_recursive == 0
    with pytest.raises(ValueError, match="left-recursive"):
        _native.GrammarMatcher(recursive, TREE)
