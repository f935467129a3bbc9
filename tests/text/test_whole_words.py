"""Where words begin and end, seen through a vocabulary in which each is a token and words that are tokens are taken."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bankml.text.kinds import PRETOKENIZERS
from bankml.text.tokenizer import Tokenizer
from tests.text.small_vocabulary import byte_characters, metadata


@pytest.fixture
def whole_words(monkeypatch):
    """Every pre-tokenizer takes a word that is a token as that token."""
    for name, kind in PRETOKENIZERS.items():
        monkeypatch.setitem(PRETOKENIZERS, name, replace(kind, whole_words=True))


def spelled(word):
    stand_ins = byte_characters()
    return "".join(stand_ins[byte] for byte in word.encode())


def words(pretokenizer, text, expected):
    """The tokens of `text` under a vocabulary that has the expected words."""
    values = dict(metadata(pretokenizer))
    known = values["tokenizer.ggml.tokens"]
    more = [word for word in dict.fromkeys(map(spelled, expected)) if word not in known]
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
        ("default", ["x", '="', "y", "`", "z", " ", "123", "4"]),
        ("falcon", ["x", "`=", "y", " ", "123", "4"]),
        ("deepseek-llm", [" Hello", "\n", "\n", " (", "本日", "12345", "\t\t"]),
        ("deepseek-coder", [" Hello", "+=", "\t(", "本日", "1", "2"]),
        ("deepseek-v3", ["123", "4", "本日", "(abc", "é\u0301", " !=\n"]),
        ("spark2_5", ["1", "2", "!", "\n", "\n", "(abc"]),
        ("afmoe", ["1", "234", "本日한국", "(abc"]),
        ("qwen35", ["xe\u0301y", "1", "2", "'s", " !\n"]),
        ("qwen2", ["xe", "\u0301y", "1", "2", "'s"]),
        ("ufakzeka", ["it", "'sa", "1", "2"]),
        ("seed-coder", ["it", "'s", "!", "\n\n", "x"]),
        ("minicpm5", ["12", " \t", "345", "6", "'s"]),
        ("laguna", ["a", " ", "\n\n", " b", "1", "2"]),
        ("exaone-moe", ["a b ce\u0301 d", "1", "!/\n", "\n"]),
        ("granite-embed-multi-97m", ["Hello", "Wo\u0301rld's", "123", "4"]),
        ("tiny_aya", ["HelloWo\u0301rld's", "1", "234", " !/\n"]),
        ("youtu", ["HelloWorld's", "本日", "，", "한국", "1", "2"]),
        ("kimi-k2", ["HelloWorld's", "本日", "ひら", "!\n", "123", "4"]),
        ("superbpe", ["Hello, World ", "1", "234", "567", " "]),
        ("chameleon", ["<", "sentinel", ":", "x", "IMGIMGABZ", "y", "\n", "\n", "x", ",", ";", "1", "2"]),
        ("bloom", ["Hello-World1", ",", " it's", "…", " x"]),
        ("viking", ["Hello-World", "1", "2", ",", " it's"]),
        ("jais-2", ["\t" * 4, "\t" * 2, "\t", " x", "123", "4"]),
    ],
)
@pytest.mark.usefixtures("whole_words")
def test_where_words_end(pretokenizer, expected):
    assert words(pretokenizer, "".join(expected), expected) == expected


def test_only_ascii_has_case_for_tekken():
    """A letter beyond ASCII is a capital and a small one: it ends a word that begins with capitals."""
    values = dict(metadata("tekken"))
    tokenizer = Tokenizer.from_header(SimpleNamespace(metadata=values))
    assert b"".join(map(tokenizer.spelling, tokenizer.encode("ÀBCdé ÉÈa"))).decode() == "ÀBCdé ÉÈa"


def test_every_name_has_a_splitter():
    for name, kind in PRETOKENIZERS.items():
        if kind.splitter is None:
            continue  # merges of characters
        tokenizer = Tokenizer.from_header(SimpleNamespace(metadata=metadata(name)))
        assert (
            b"".join(map(tokenizer.spelling, tokenizer.encode("Hello, World 123!\n é"))).decode()
            == "Hello, World 123!\n é"
        )
