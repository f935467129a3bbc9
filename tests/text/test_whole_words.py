"""Pre-tokenizers whose words are tokens where the vocabulary has them: where words begin and end can be seen."""

from types import SimpleNamespace

import pytest

from bankml.text.kinds import PRETOKENIZERS
from bankml.text.tokenizer import Tokenizer
from tests.text.small_vocabulary import metadata

SPACE, NEWLINE = "\u0120", "\u010a"  # what stands for these bytes


def words(pretokenizer, text, expected):
    """The tokens of `text` under a vocabulary that has the expected words."""
    values = dict(metadata(pretokenizer))
    spelled = [word.replace(" ", SPACE).replace("\n", NEWLINE) for word in expected]
    known = values["tokenizer.ggml.tokens"]
    more = [word for word in dict.fromkeys(spelled) if word not in known]
    values["tokenizer.ggml.tokens"] = [*known, *more]
    values["tokenizer.ggml.token_type"] = [*values["tokenizer.ggml.token_type"], *[1] * len(more)]
    tokenizer = Tokenizer.from_header(SimpleNamespace(metadata=values))
    return [tokenizer.spelling(token).decode() for token in tokenizer.encode(text)]


@pytest.mark.parametrize(
    ("pretokenizer", "expected"),
    [
        ("llama-bpe", ["HelloWorld", " ", "123", "4"]),
        ("llama-bpe", ["it", "'s", " HELLOWorld", " '", "s"]),
        ("llama-bpe", ["a", "!?\n\n", "b", " \n", "\t", " c"]),
        ("llama-bpe", ["a", "!/", "a"]),
        ("tekken", ["Hello", "World", " it", "'s"]),
        ("tekken", ["HELLOworld", "ABC", " DEFg"]),
        ("tekken", ["1", "2", "3", " ", "4"]),
        ("tekken", ["a", "!/\n/", "b"]),
        ("tekken", ["ABC", " x", "YZ"]),
    ],
)
def test_where_words_end(pretokenizer, expected):
    assert words(pretokenizer, "".join(expected), expected) == expected


def test_only_ascii_has_case_for_tekken():
    """A letter beyond ASCII is a capital and a small one: it ends a word that begins with capitals."""
    values = dict(metadata("tekken"))
    tokenizer = Tokenizer.from_header(SimpleNamespace(metadata=values))
    assert b"".join(map(tokenizer.spelling, tokenizer.encode("ÀBCdé ÉÈa"))).decode() == "ÀBCdé ÉÈa"


def test_every_name_has_a_splitter():
    for name in PRETOKENIZERS:
        tokenizer = Tokenizer.from_header(SimpleNamespace(metadata=metadata(name)))
        assert (
            b"".join(map(tokenizer.spelling, tokenizer.encode("Hello, World 123!\n é"))).decode()
            == "Hello, World 123!\n é"
        )
