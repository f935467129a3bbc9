"""SentencePiece's tokenizer: merges by score, bytes, spaces, special tokens, and what texts begin and end with."""

import random
from types import SimpleNamespace

import pytest

from bankml.text.template import ChatTemplate
from bankml.text.template_tokens import TemplateTokens
from bankml.text.tokenizer import Tokenizer

UNKNOWN, CONTROL, USER, BYTE, NORMAL = 2, 3, 4, 6, 1
PIECES = {
    "\u2581": -9.0, "h": -10.0, "e": -10.0, "l": -10.0, "o": -10.0, "a": -10.0, "\u2581h": -4.0, "el": -3.0, "lo": -2.0,
    "hel": -5.0, "\u2581hello": -1.0, "\u2581hel": -1.5, "aa": -3.0, "\u2581\u2581": -6.0,
}  # fmt: skip
SPECIAL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<|user|>", USER)]
TOKENS = [*(text for text, _ in SPECIAL), *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
TYPES = [*(kind for _, kind in SPECIAL), *[BYTE] * 256, *[NORMAL] * len(PIECES)]
SCORES = [0.0] * (len(SPECIAL) + 256) + list(PIECES.values())


def tokenizer(**changes):
    metadata = {"model": "llama", "tokens": TOKENS, "token_type": TYPES, "scores": SCORES, **changes}
    name = metadata.pop("name", "x")
    keys = {f"tokenizer.ggml.{key}": value for key, value in metadata.items()}
    return Tokenizer.from_header(SimpleNamespace(metadata={**keys, "general.name": name}))


def words(found, tokens):
    return [found.vocabulary.tokens[token] for token in tokens]


def test_the_best_score_is_merged_first():
    found = tokenizer()
    assert words(found, found.encode("hello")) == ["\u2581hello"]
    assert words(found, found.encode("hell")) == ["\u2581hel", "l"]
    assert words(found, found.encode("aaa")) == ["\u2581", "aa", "a"], "of equals the leftmost"


def test_a_space_stands_before_a_text_and_after_special_tokens():
    found = tokenizer()
    assert words(found, found.encode("h<s>h</s><|user|> h")) == [
        "\u2581h", "<s>", "\u2581h", "</s>", "<|user|>", "\u2581", "\u2581h",
    ]  # fmt: skip
    assert found.encode("") == [] and words(found, found.encode(" ")) == ["\u2581\u2581"]
    plain = tokenizer(add_space_prefix=False)
    assert words(plain, plain.encode("h<s>h")) == ["h", "<s>", "h"]
    assert "<s>" not in words(plain, plain.encode("h<s>h", parse_special=False))
    assert words(plain, plain.encode("<|user|>", parse_special=False)) == ["<|user|>"]


def test_what_no_token_stands_for_is_bytes():
    found = tokenizer(add_space_prefix=False)
    assert words(found, found.encode("\u20ach")) == ["<0xE2>", "<0x82>", "<0xAC>", "h"]
    assert words(found, found.encode(b"\xff")) == ["<0xFF>"]
    assert b"".join(map(found.piece, found.encode("h\u20ac a"))) == "h\u20ac a".encode()
    bare = tokenizer(tokens=[*TOKENS[:4], *(f"#{i}" for i in range(256)), *PIECES], token_type=None)
    assert words(bare, bare.encode("\u20ac"))[-3:] == ["<unk>"] * 3


def test_pieces_and_spellings():
    found = tokenizer()
    by_text = {text: id for id, text in enumerate(TOKENS)}
    assert found.piece(by_text["\u2581hel"]) == b" hel" and found.piece(by_text["<0x0A>"]) == b"\n"
    assert found.piece(by_text["</s>"]) == b"" and found.spelling(by_text["</s>"]) == b"</s>"


def test_texts_begin_and_end_as_the_header_says():
    found = tokenizer()
    bos, eos = 1, 2
    assert (found.vocabulary.bos, found.vocabulary.eos, found.vocabulary.unknown) == (bos, eos, 0)
    assert found.encode("h", add_special=True) == [bos, *found.encode("h")]
    both = tokenizer(add_bos_token=False, add_eos_token=True)
    assert both.encode("h", add_special=True) == [*both.encode("h"), eos]
    assert both.encode("h") == found.encode("h")


def test_a_template_that_writes_what_is_added_does_not_add_it_twice():
    source = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
    said = [{"role": "user", "content": "h"}]
    assert ChatTemplate(source, TemplateTokens("<s>", "</s>", True, False)).render(said) == "h</s>"
    assert ChatTemplate(source, TemplateTokens("<s>", "</s>", True, True)).render(said) == "h"
    assert ChatTemplate(source, TemplateTokens("<s>", "</s>")).render(said) == "<s>h</s>"
    assert tokenizer().template_tokens == TemplateTokens("<s>", "</s>", True, False)


def test_phi_3_strips_white_space_behind_its_special_tokens():
    found = tokenizer(name="Phi-3 mini", add_space_prefix=False)
    assert words(found, found.encode("<|user|> \n h</s> h<s> h")) == ["<|user|>", "h", "</s>", "h", "<s>", "\u2581h"]


@pytest.mark.parametrize("text", ["a" * (1 << 20), "hello " * (1 << 17), "\u20ac" * (1 << 18), " " * (1 << 20)])
def test_a_megabyte_takes_no_square_of_its_length(text):
    assert b"".join(map(tokenizer().piece, tokenizer().encode(text)))[1:] == text.encode()


def test_pieces_of_any_text_put_it_together_again():
    found, rng = tokenizer(), random.Random(3)
    for _ in range(300):
        text = "".join(
            rng.choice(["h", "e", "l", "o", " ", "a", "\u20ac", "\n", "\u2581x", "\U0001f600"]) for _ in range(20)
        )
        joined = b"".join(map(found.piece, found.encode(text, parse_special=False))).decode()
        assert joined == " " + text.replace("\u2581", " ")
