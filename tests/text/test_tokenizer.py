"""Tokens as the reference makes them, on a small vocabulary recorded by record_tokenizer.py."""

import base64
import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.errors import Refused
from bankml.text.tokenizer import Tokenizer
from tests.text.small_vocabulary import MISSING_BYTES, byte_characters, metadata


def small(pretokenizer: str) -> Tokenizer:
    return Tokenizer.from_header(SimpleNamespace(metadata=metadata(pretokenizer)))


QWEN2, SMOLLM = small("qwen2"), small("smollm")
TOKENIZERS = {"qwen2": QWEN2, "smollm": SMOLLM}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokens_are_the_references(name, recorded_tokens):
    tokenizer = TOKENIZERS[name]
    for text, special, plain in recorded_tokens[name]["texts"]:
        data = base64.b64decode(text)
        assert tokenizer.encode(data, parse_special=True) == special, data
        assert tokenizer.encode(data, parse_special=False) == plain, data


@pytest.mark.parametrize("name", TOKENIZERS)
def test_pieces_and_ends_are_the_references(name, recorded_tokens):
    tokenizer, recording = TOKENIZERS[name], recorded_tokens[name]
    ids = range(tokenizer.n_vocab)
    assert [tokenizer.piece(id).hex() for id in ids] == recording["pieces"]
    assert [tokenizer.spelling(id).hex() for id in ids] == recording["spellings"]
    assert [id for id in ids if tokenizer.is_end_of_generation(id)] == recording["ends"]


@pytest.mark.parametrize(
    ("kind", "texts", "says"),
    [
        (3, ["x" * 1_100_000], "11001.. bytes of special tokens"),
        (4, [f"{i:05}" + "x" * 1000 for i in range(1100)], "bytes of special tokens"),
        (1, ["一" * 3000], "spelled out in 270000.. bytes"),
        (1, [f"{i:05}" + "一" * 100 for i in range(600)], "spelled out in"),
    ],
)
def test_tokens_that_take_more_memory_than_their_file_suggests_are_refused(kind, texts, says):
    values = metadata("qwen2")
    tokens, types = (values[f"tokenizer.ggml.{key}"] for key in ("tokens", "token_type"))
    more = {"tokenizer.ggml.tokens": [*tokens, *texts], "tokenizer.ggml.token_type": [*types, *[kind] * len(texts)]}
    with pytest.raises(Refused, match=r"tokenizer\.ggml\.tokens has .*" + says):
        Tokenizer.from_header(SimpleNamespace(metadata=values | more))


def test_the_template_is_given_the_texts_of_bos_and_eos():
    assert (QWEN2.bos_text, QWEN2.eos_text) == ("<|im_start|>", "<|endoftext|>")


def test_numbers_are_single_words_only_where_the_pretokenizer_cuts_them():
    assert len(SMOLLM.encode("１２")) >= 2
    assert QWEN2.encode("12") == QWEN2.encode("1") + QWEN2.encode("2")


def test_str_and_its_utf8_give_the_same():
    text = "grüße <|x|> 日本語 🙂"
    assert QWEN2.encode(text) == QWEN2.encode(text.encode())
    assert QWEN2.n_tokens(text) == len(QWEN2.encode(text))


def test_what_is_not_utf8_is_read_as_the_replacement_character():
    assert QWEN2.encode(b"a\xff\x80b") == QWEN2.encode("a\ufffd\ufffdb")
    assert QWEN2.encode("a\ud800b") == QWEN2.encode("a\ufffdb")
    assert QWEN2.encode(b"\xf4\x90\x80\x80") == QWEN2.encode("\ufffd" * 4)


@given(st.text())
def test_the_pieces_of_plain_text_put_it_together_again(text):
    wanted = bytes(byte for byte in text.encode() if byte not in MISSING_BYTES)
    # Strings that merges make but that are no tokens lose what has no one-byte spelling.
    if not any(word in "".join(byte_characters()[b] for b in text.encode()) for word in ("Ġ", "Ċ")):
        assert b"".join(QWEN2.spelling(token) for token in QWEN2.encode(text, parse_special=False)) == wanted


@pytest.mark.parametrize("unit", ["a", " ", "\n ", "<", "1", "日", "<|x|>", "ab "])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_megabyte_of_one_thing_takes_no_square_of_its_length(name, unit):
    text = unit * (1_000_000 // len(unit.encode()))
    started = time.thread_time()
    TOKENIZERS[name].encode(text)
    assert time.thread_time() - started < 5


def test_encoding_runs_beside_other_threads():
    text, ticks, done = "ab " * 4_000_000, [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = ticks[0]
    QWEN2.encode(text)
    during = ticks[0] - before
    done.set()
    thread.join()
    # Some hundred milliseconds of one call: with the interpreter's lock held the other thread would stand still.
    assert during >= 5
