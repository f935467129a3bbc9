"""Merges of characters: spaces, line ends, characters without a token, and what texts begin with."""

from types import SimpleNamespace

import pytest

from bankml.errors import Refused
from bankml.text.tokenizer import Tokenizer
from tests.text.small_characters import IDS, metadata


def tokenizer(**changes):
    return Tokenizer.from_header(SimpleNamespace(metadata=metadata(**changes)))


def words(text, **changes):
    found = tokenizer(**changes)
    return [found.vocabulary.tokens[token] for token in found.encode(text)]


def test_merges_reach_over_spaces():
    assert words("hello hello") == ["hello", "\u2581hello"]
    assert words("hello  he") == ["hello", "  ", "he"], "a user-defined token is found before spaces are replaced"
    assert words("hello \u2581a") == ["hello", "\u2581\u2581", "a"]


def test_merges_end_at_line_ends():
    assert words("a\na\n\na") == ["a", "\n", "a", "\n\n", "a"]


def test_a_run_of_line_ends_that_is_a_token_is_that_token():
    assert words("\n\n\n\n") == ["\n\n\n\n"], "no merge makes it"
    same = {"model": "gpt2", "pre": "sarvam-moe"}
    assert words("\n\n\n\n", **same) == ["\n\n", "\n\n"], "one of the kinds has no such rule"
    assert words("\n\n\n\n", model="gpt2", pre="granite-embed-multi-311m") == ["\n\n\n\n"]


def test_what_no_token_stands_for_is_spelled_in_bytes():
    assert words("ж") == ["<0xD0>", "<0xB6>"]
    assert words("И") == ["<0xD0>", "<0x98>"]
    assert words("Ð") == [], "neither of its bytes has a token"
    assert words("qu") == ["<0x71>", "<0x75>"], "a merge makes what is no token"
    assert words("zz") == ["<0x7A>", "<0x7A>"], "its bytes, though each letter is a token"
    assert words(b"a\xff") == ["a", "<0xEF>", "<0xBF>", "<0xBD>"]
    assert words("\x00") == ["<0x00>"]


def test_an_overlong_space_is_a_space():
    assert words(b"a\xc0\xa0hello") == ["a", "\u2581hello"]


def test_a_text_always_begins_with_its_token():
    for flag in (None, True, False):
        assert tokenizer(add_bos_token=flag).encode("a", add_special=True) == [IDS["<bos>"], IDS["a"]]
    plain = tokenizer(model="gpt2", pre="sarvam-moe", add_bos_token=False)
    assert plain.encode("a", add_special=True) == [IDS["a"]]
    with pytest.raises(Refused, match=r"tokenizer\.ggml\.bos_token_id is missing"):
        tokenizer(bos_token_id=None)


def test_pieces_and_texts():
    found = tokenizer()
    assert found.piece(IDS["\u2581hello"]) == b" hello" and found.piece(IDS["<0xD0>"]) == b"\xd0"
    assert found.piece(IDS["<bos>"]) == b"" and found.spelling(IDS["<bos>"]) == b"<bos>"
    assert found.text(found.encode("hello ! жa", add_special=True)) == "<bos>hello! жa", "spaces before signs go"
    assert tokenizer(model="gpt2", pre="sarvam-moe").text(found.encode("a !")) == "a !"


@pytest.mark.parametrize("text", ["a" * (1 << 20), "hello " * (1 << 17), "ж日" * (1 << 17), "\n" * (1 << 20)])
def test_a_megabyte_takes_no_square_of_its_length(text):
    found = tokenizer()
    assert b"".join(map(found.spelling, found.encode(text))).decode() == text
