"""What the parser makes of a text, and what it says of one that is no grammar."""

import time

import numpy as np
import pytest

from bankml.errors import RequestError
from bankml.grammar import gbnf
from bankml.grammar.gbnf_source import REASON, GbnfSource
from bankml.grammar.matcher import Grammar


def elements(text, tokenize=None):
    rules = gbnf.parse(GbnfSource(text), tokenize=tokenize)
    return list(zip(rules.kinds.tolist(), rules.values.tolist(), strict=True)), rules


def literal(text):
    return [(gbnf.CHARACTER, ord(c)) for c in text]


def test_literals_sets_and_tokens():
    text = 'root ::= "a\\n\\x41" [^a-c\\]] . !<[7]> <x> | []'
    assert elements(text, lambda t: [9] if t == "<x>" else [])[0] == [
        *literal("a\nA"),
        *((gbnf.NOT_CHARACTER, ord("a")), (gbnf.UPPER, ord("c")), (gbnf.ALSO, ord("]"))),
        *((gbnf.ANY, 0), (gbnf.NOT_TOKEN, 7), (gbnf.TOKEN, 9), (gbnf.ALTERNATIVE, 0), (gbnf.END, 0)),
    ]


def test_repetitions_become_rules():
    found, rules = elements('root ::= "ab"{1,2} "c"*')
    assert found == [
        *literal("ab"), (gbnf.RULE, 1), (gbnf.RULE, 2), (gbnf.END, 0),
        *literal("ab"), (gbnf.ALTERNATIVE, 0), (gbnf.END, 0),
        *literal("c"), (gbnf.RULE, 2), (gbnf.ALTERNATIVE, 0), (gbnf.END, 0),
    ]  # fmt: skip
    assert rules.starts.tolist() == [0, 5, 9] and rules.root == 0


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_lines_and_comments(line_end):
    text = line_end.join(["# first", "root ::= (a |", ' "x" # in brackets', ") ", "", "a ::= |", '"y"'])
    assert elements(text)[0] == elements('root ::= (a | "x")\na ::= "" | "y"')[0]


@pytest.mark.parametrize(
    ("text", "line", "column", "why"),
    [
        ("# nothing", 1, 1, "the grammar has no rule 'root'"),
        ('start ::= "x"', 1, 1, "the grammar has no rule 'root'"),
        ("root ::= a b\nb ::= a", 1, 10, "Undefined rule identifier 'a'"),
        (
            'root ::= "x"\nb ::= b "x" | "y"',
            2,
            1,
            "unsupported grammar, left recursion: this rule can begin with itself",
        ),
        ('root ::= x root "y"\r\nx ::= y\r\ny ::= "a"*', 1, 1, "unsupported grammar, left recursion"),
        ('root ::= "x', 1, 12, "unexpected end of input"),
        ('root ::= (\n"a" b', 2, 6, "expecting ')', but the text ends"),
        ('root ::= "\\q"', 1, 11, "unknown escape"),
        ('root ::= "\\u00e"', 1, 13, "expecting 4 hex chars"),
        ("root = a", 1, 6, "expecting ::= at '= a'"),
        ("root ::= *", 1, 10, "expecting preceding item to */+/?/{"),
        ('root ::= "a" "b"{3,2}', 1, 17, "a repetition of at least 3 and at most 2 is impossible"),
        ('root ::= "a"{2001}', 1, 13, "number of repetitions exceeds sane defaults"),
        ('root ::= ("a"{0,100}){100}', 1, 22, "number of rules that are going to be repeated"),
        ("root ::= <a", 1, 12, "expecting '>'"),
        ("root ::= <a>", 1, 10, "invalid token '<a>'"),
        ("root ::= <[4294967296]>", 1, 12, "the number is too large"),
        ('root ::= "a" )', 1, 14, "expecting newline or end at ')'"),
        ('root ::= "\0"', 1, 11, "a NUL character"),
    ],
)
def test_refusals_tell_the_place(text, line, column, why):
    with pytest.raises(RequestError) as caught:
        Grammar.parse(text, tokenize=lambda _: [1, 2])
    assert caught.value.message.startswith(f"{REASON}: line {line}, column {column}: {why}"), caught.value.message


def test_a_harmless_left_recursion_is_taken():
    Grammar.parse('root ::= ws root | "x"\nws ::= sp\nsp ::= " "*')


def test_the_last_definition_counts():
    assert elements('root ::= "a"\nroot ::= "b"')[0] == elements('root ::= "b"')[0]


TOO_MUCH = {
    "literals": "root ::= " + " ".join('"%s"{2000}' % ("a" * 1000) for _ in range(20)),
    "optional": "root ::= " + " ".join("[a-zA-Z0-9_]{0,2000}" for _ in range(200)),
    "plus": 'root ::= "a"' + "+" * 20000,
    "brackets": "root ::= " + "(" * 100000,
    "text": "root ::= " + "a " * 400000,
    "number": 'root ::= "a"{' + "9" * 500000 + "}",
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_is_built_to_blow_up_is_refused_in_time(name):
    start = time.perf_counter()
    with pytest.raises(RequestError):
        Grammar.parse(TOO_MUCH[name])
    assert time.perf_counter() - start < 1


def test_arrays_are_what_native_code_takes():
    rules = gbnf.parse(GbnfSource('root ::= "a"'))
    assert (rules.kinds.dtype, rules.values.dtype, rules.starts.dtype) == (np.uint8, np.uint32, np.uint32)
