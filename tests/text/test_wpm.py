"""WordPiece: what is done to a text first, the longest token first, and what texts begin and end with."""

from types import SimpleNamespace

import pytest

from bankml.errors import Refused
from bankml.text.tokenizer import Tokenizer
from tests.text.small_wordpiece import IDS, TOKENS, metadata


def tokenizer(**changes):
    return Tokenizer.from_header(SimpleNamespace(metadata=metadata(**changes)))


def words(text, parse_special=True, **changes):
    found = tokenizer(**changes)
    return [found.vocabulary.tokens[token] for token in found.encode(text, parse_special)]


def test_the_longest_token_is_taken_first():
    assert words("hello helloing hell") == ["\u2581hello", "\u2581hello", "ing", "\u2581hel", "l"]


def test_a_word_that_tokens_do_not_spell_is_unknown_as_a_whole():
    assert words("hello\u0416 hello") == ["[UNK]", "\u2581hello"]


def test_case_and_accents_are_removed():
    assert words("HELLO Caf\u00e9 cafe\u0301 NA\u00cfVE \u0130") == [
        "\u2581hello", "\u2581cafe", "\u2581cafe", "\u2581naive", "\u2581i",
    ]  # fmt: skip
    assert words("H\u00c0", **{"normalizer.strip_accents": False}) == ["\u2581h", "\u00e0"]
    assert words("H\u00e0", **{"normalizer.lowercase": False}) == ["[UNK]"]
    assert words("h\u00e0", **{"normalizer.lowercase": False}) == ["\u2581h", "\u00e0"]
    assert words("h\u00e0", **{"normalizer.lowercase": False, "normalizer.strip_accents": True}) == ["\u2581h", "a"]


def test_punctuation_signs_of_ascii_and_ideographs_are_words():
    assert words("hello!it's 1+1=12") == [
        "\u2581hello", "\u2581!", "\u2581i", "t", "\u2581'", "\u2581s", "\u25811", "\u2581+", "\u25811", "\u2581=",
        "\u258112",
    ]  # fmt: skip
    assert words("\u65e5\u672ca\u65e5") == ["\u2581\u65e5", "\u2581\u672c", "\u2581a", "\u2581\u65e5"]
    assert words("a\u20ac") == ["[UNK]"], "a sign past ASCII stays with its word"


def test_white_space_ends_a_word_and_control_characters_go():
    assert words("\r\n a\u3000\u2028b\x85c ") == ["\u2581a", "\u2581b", "\u2581c"]
    assert words("he\u200bl\x00lo\ufffd") == ["\u2581hello"]
    assert words(b"he\xffllo\xc3") == ["\u2581hello"]
    assert words("") == words(" \n") == words("\x00") == []


def test_special_tokens_are_cut_out_first():
    assert words("hello[SEP]HELLO<|x|>") == ["\u2581hello", "[SEP]", "\u2581hello", "<|x|>"]
    assert words("[SEP]<|x|>", parse_special=False) == ["[UNK]", "\u2581s", "e", "p", "[UNK]", "<|x|>"]


def test_a_text_is_enclosed_whatever_the_flags_say():
    for flag in (None, True, False):
        found = tokenizer(add_bos_token=flag, add_eos_token=flag)
        assert found.encode("hello", add_special=True) == [IDS["[CLS]"], IDS["\u2581hello"], IDS["[SEP]"]]
    assert (found.bos_text, found.eos_text, found.begin) == ("[CLS]", "", [IDS["[CLS]"]])


def test_pieces_and_texts():
    found = tokenizer()
    assert found.piece(IDS["\u2581hello"]) == b" hello" and found.piece(IDS["[SEP]"]) == b""
    assert found.text(found.encode("hello ! i", add_special=True)) == "[CLS] hello! i[SEP]"


@pytest.mark.parametrize("key", ["bos_token_id", "unknown_token_id", "seperator_token_id"])
def test_a_token_that_it_cannot_do_without_is_named(key):
    """The vocabulary is too small for the ids that are BERT's."""
    with pytest.raises(Refused, match=f"tokenizer.ggml.{key} is missing"):
        tokenizer(tokens=TOKENS[:90], token_type=None, **{key: None})


def test_the_ids_of_bert_are_the_defaults():
    tokens = [*TOKENS, *(f"[unused{i}]" for i in range(1, 120))]
    found = tokenizer(tokens=tokens, token_type=None, bos_token_id=None, unknown_token_id=None, seperator_token_id=None)
    vocabulary = found.vocabulary
    assert (vocabulary.bos, vocabulary.unknown, vocabulary.separator, vocabulary.eos) == (101, 100, 102, None)


def test_byte_tokens_are_refused():
    with pytest.raises(Refused, match="a byte, which WordPiece does not have"):
        tokenizer(tokens=[*TOKENS, "<0x41>"], token_type=[*[1] * len(TOKENS), 6])


@pytest.mark.parametrize("text", ["a" * (1 << 20), "hello " * (1 << 17), "\u00e9\u65e5" * (1 << 17), " " * (1 << 20)])
def test_a_megabyte_takes_no_square_of_its_length(text):
    found = tokenizer()
    n_words = text.count("hello") + text.count("\u65e5") * 2
    assert len(found.encode(text)) == (n_words or text.count("a"))
