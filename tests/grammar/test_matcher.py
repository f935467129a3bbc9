"""Matching texts: against Python's own regular expressions, at the edges, and under the sampler."""

import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.errors import RequestError
from bankml.grammar.matcher import Grammar, Matcher, vocabulary_tree
from bankml.grammar.sampler import GrammarSampler

BYTES = vocabulary_tree([b"", *(bytes([b]) for b in range(1, 256))], [0])


def matches(grammar, text):
    matcher = Matcher(grammar, BYTES)
    try:
        matcher.accept_text(text.encode())
    except RequestError:
        return False
    return matcher.complete


PATTERNS = {
    r"(?:a|bc)*d?": 'root ::= ("a" | "bc")* "d"?',
    r"[^a-c]{2,4}b+": 'root ::= [^a-c]{2,4} "b"+',
    r"(?:(?:ab?){2}|é.)+": 'root ::= (("a" "b"?){2} | "é" .)+',
    r"(?:a?){5}(?:b|日){1,}": 'root ::= ("a"?){5} ("b" | "日"){1,}',
    r"(?:|a(?:|b(?:|c)))d": 'root ::= ( | "a" ( | "b" ( | "c"))) "d"',
}


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text("abcdé日x", max_size=9))
@settings(max_examples=150, deadline=None)
def test_as_regular_expressions(pattern, text):
    assert matches(Grammar.parse(PATTERNS[pattern]), text) == bool(re.fullmatch(pattern, text, re.DOTALL))


@given(st.text("()[]", max_size=12))
@settings(max_examples=300, deadline=None)
def test_brackets(text):
    left = text
    while (shorter := left.replace("()", "").replace("[]", "")) != left:
        left = shorter
    assert matches(Grammar.parse('root ::= ("(" root ")" | "[" root "]")*'), text) == (left == "")


@pytest.mark.parametrize(
    "text",
    [
        "root ::= a0\n" + "\n".join(f'a{i} ::= a{i + 1} "x" | a{i + 1} "y"' for i in range(40)) + '\na40 ::= "b"',
        'root ::= s\ns ::= "a" s "x" | "a" s "y" | "b"',
        'root ::= ("a"?){1000} "b"',
    ],
)
def test_many_readings_cost_no_more_than_few(text):
    start = time.perf_counter()
    matcher = Matcher(Grammar.parse(text), BYTES)
    matcher.accept_text(b"b" if text.startswith("root ::= a0") else b"a" * 200 + b"b")
    matcher.mask(np.zeros(256, np.float32))
    assert time.perf_counter() - start < 1


def test_a_long_text_is_held_in_little():
    matcher = Matcher(Grammar.parse('root ::= "(" root ")" | [a-z]{1,500} root | "!"'), BYTES)
    logits = np.zeros(256, np.float32)
    for i in range(3000):
        matcher.mask(logits)
        matcher.accept(ord("(" if i % 7 == 0 else "q"))
    assert not matcher.complete and matcher.allows(ord("!"))


def test_characters_cut_between_tokens():
    matcher = Matcher(Grammar.parse('root ::= "é" | "日本"'), BYTES)
    assert [b for b in range(256) if matcher.allows(b)] == [0xC3, 0xE6]
    for byte in "日本".encode():
        assert matcher.allows(byte) and not matcher.allows(ord("a"))
        matcher.accept(byte)
    assert matcher.complete and [b for b in range(256) if matcher.allows(b)] == [0]
    matcher.accept(0)
    assert matcher.complete


def test_refusals():
    matcher = Matcher(Grammar.parse('root ::= "ab"'), BYTES)
    with pytest.raises(RequestError, match=r"Unexpected empty grammar stack after accepting piece: b \(98\)"):
        matcher.accept(ord("b"))
    with pytest.raises(RequestError, match="piece: é"):
        Matcher(Grammar.parse('root ::= "ab"'), BYTES).accept_text("é".encode())
    with pytest.raises(RequestError, match="no token of this model"):
        Matcher(Grammar.parse("root ::= [\\x00]"), BYTES).mask(np.zeros(256, np.float32))


class Chain:
    """Draws the highest logit; keeps what it was given."""

    def __init__(self):
        self.drawn, self.accepted = [], []

    def accept_all(self, tokens):
        self.accepted += tokens

    def accept(self, token):
        self.accepted.append(token)

    def sample(self, logits):
        self.drawn.append(logits.copy())
        return int(np.argmax(logits))


def test_the_sampler_draws_again_only_when_the_draw_breaks_the_grammar():
    chain = Chain()
    sampler = GrammarSampler(chain, Matcher(Grammar.parse('root ::= "ab" | "c"'), BYTES))
    sampler.accept_all([1, 2])
    logits = np.linspace(1, 0, 256).astype(np.float32)
    logits[ord("c")] = 3
    assert sampler.sample(logits) == ord("c") and (len(chain.drawn), sampler.resampled) == (1, 0)
    logits[ord("c")], logits[ord("a")], logits[ord("z")] = 2, 3, 4
    assert sampler.sample(logits) == ord("a") and (len(chain.drawn), sampler.resampled) == (3, 1)
    assert np.array_equal(chain.drawn[1], logits)
    assert np.flatnonzero(np.isfinite(chain.drawn[2])).tolist() == [ord("a"), ord("c")]
    sampler.accept(ord("a"))
    assert sampler.sample(logits) == ord("b") and chain.accepted == [1, 2, ord("a")]
