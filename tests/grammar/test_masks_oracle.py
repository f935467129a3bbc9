"""Masks over whole vocabularies against libllama's own grammar sampler, along texts drawn from each grammar."""

import numpy as np
import pytest

from bankml.errors import RequestError
from bankml.gguf.header import read_header
from bankml.grammar.matcher import Grammar, Matcher
from bankml.library.resident import grammar_tree
from bankml.text.tokenizer import Tokenizer
from tests import oracle
from tests.grammar.cases import RECORDED, WITH_TOKENS
from tests.grammar.reference import ReferenceGrammars

pytestmark = pytest.mark.oracle
POSITIONS = {"SmolLM2-135M-Instruct-F16": 45, "Qw-tiny-F16": 8}


class Both:
    def __init__(self, name):
        path = oracle.model(f"{name}.gguf")
        self.tokenizer = Tokenizer.from_header(read_header(path))
        self.tree = grammar_tree(self.tokenizer)
        self.reference = ReferenceGrammars(path)
        self.n_positions = POSITIONS[name]
        assert self.reference.n_vocab == self.tokenizer.n_vocab

    def compare(self, text, seed):
        """Goes along texts of the grammar for `n_positions` masks; a text that cannot go on begins anew."""
        random = np.random.default_rng(seed)
        logits = random.standard_normal(self.tokenizer.n_vocab).astype(np.float32)
        grammar = Grammar.parse(text, tokenize=self.tokenizer.encode)
        ours, theirs, history = Matcher(grammar, self.tree), self.reference.sampler(text), []
        for _ in range(self.n_positions):
            masked = ours.mask(logits)
            assert np.array_equal(masked, theirs.mask(logits)), (text, history)
            token = self._next(grammar, np.flatnonzero(np.isfinite(masked)), history, random)
            if token is None:
                ours, theirs, history = Matcher(grammar, self.tree), self.reference.sampler(text), []
                continue
            ours.accept(token)
            theirs.accept(token)
            history.append(token)

    def _next(self, grammar, allowed, history, random):
        """A token that the grammar has a way on with; with token terminals not every one that is allowed has."""
        cut = [t for t in allowed if self.tree.piece(int(t))[-1:] >= b"\x80"]
        pool = cut if cut and random.random() < 0.3 else allowed
        for token in random.permutation(pool)[:10]:
            probe = Matcher(grammar, self.tree)
            try:
                for t in (*history, int(token)):
                    probe.accept(t)
                probe.mask(np.zeros(self.tokenizer.n_vocab, np.float32))
            except RequestError:
                continue
            if not self.tokenizer.is_end_of_generation(int(token)):
                return int(token)
        return None


@pytest.fixture(scope="module", params=POSITIONS)
def both(request):
    return Both(request.param)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(both, name):
    both.compare(RECORDED[name], len(name))


@pytest.mark.parametrize("name", WITH_TOKENS)
def test_with_tokens(both, name):
    a, b = both.tokenizer.encode("hello"), both.tokenizer.encode("日本")
    both.compare(WITH_TOKENS[name].format(a[-1], b[0]), len(name))


REFUSED = [
    *("# nothing", "root", "root ::= a", 'start ::= "x"', 'root ::= root "x" | "y"', 'root ::= "x', "root ::= [a"),
    *('root ::= "\\q"', 'root ::= "\\x4"', 'root ::= ("a"', 'root ::= "a")', "root ::= *", "root ::= [] *"),
    *('root ::= "a"{', 'root ::= "a"{1', 'root ::= "a"{,2}', 'root ::= "a"{2001}', 'root ::= ("a"{0,100}){100}'),
    *(
        'root ::= "a" \n "b"',
        "root ::= <nothing at all>",
        "root ::= <[x]>",
        "root ::= <[1>",
        "root ::= <[99999999999]>",
    ),
    *(
        "root ::= !a",
        "root := a",
        "1_ ::= a",
        'root ::= x root "y"\nx ::= "a" | ',
        'root ::= "a"{18446744073709551616}',
    ),
    'root ::= a\na ::= b\nb ::= a "x" | "y"',
]
TAKEN = [
    *('root ::= "a"{2000}', 'root ::= "a"{5,3000}', 'root ::= ("a"\n| "b"\n) #c', "root ::= []", 'root ::= "a" | '),
    *("root ::=\n\n[a-]", 'a ::= "x"\nroot ::= a|a', 'root ::= [\\]\\[\\-"\\\\]', "root ::= [^]"),
    *('root ::= "x"\rroot-2 ::= root', 'root ::= "a"{0}', 'root ::= ws root | "x"\nws ::= sp\nsp ::= " "*'),
    *("root ::= <[4294967295]>", 'root ::= "a"\nroot ::= "b"'),
]


@pytest.mark.parametrize("text", REFUSED + TAKEN)
def test_the_same_texts_are_grammars(both, text):
    if both.n_positions == min(POSITIONS.values()):
        pytest.skip("one model's vocabulary is enough")
    theirs = both.reference.sampler(text)
    try:
        Matcher(Grammar.parse(text, tokenize=both.tokenizer.encode), both.tree)
    except RequestError as error:
        assert theirs is None, error
    else:
        assert theirs is not None
