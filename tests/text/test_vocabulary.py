"""What a header may not say of its vocabulary, each refused with the key that says it."""

from array import array
from types import SimpleNamespace

import pytest

from bankml.errors import Refused
from bankml.gguf.values import StringArray
from bankml.text.vocabulary import Vocabulary
from tests.text.small_vocabulary import metadata

GOOD = metadata()
KEY = "tokenizer.ggml."


def read(**changes):
    values = dict(GOOD)
    for name, value in changes.items():
        key = name if name.startswith("general") else KEY + name
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return Vocabulary.from_header(SimpleNamespace(metadata=values))


TOKENS, TYPES, MERGES = GOOD[KEY + "tokens"], GOOD[KEY + "token_type"], GOOD[KEY + "merges"]


@pytest.mark.parametrize(
    "changes, says",
    [
        (
            {"model": "rwkv"},
            "tokenizer.ggml.model: unsupported vocabulary 'rwkv' (supported: gpt2, llama, bert,",
        ),
        ({"model": "llama", "scores": [1.0]}, "tokenizer.ggml.scores has 1 entries for"),
        ({"model": "llama", "scores": "x"}, "tokenizer.ggml.scores is not an array of 32-bit numbers"),
        ({"model": "llama", "scores": [float("nan")] * len(TOKENS)}, "tokenizer.ggml.scores has an entry that is not"),
        ({"model": "llama", "add_space_prefix": 1}, "tokenizer.ggml.add_space_prefix is an integer, not true or false"),
        ({"model": None}, "tokenizer.ggml.model is missing"),
        ({"model": 3}, "tokenizer.ggml.model is not a string"),
        (
            {"pre": "whitespace"},
            "tokenizer.ggml.pre: unsupported pre-tokenizer 'whitespace' (supported: gpt-2,",
        ),
        ({"pre": 3}, "tokenizer.ggml.pre is not a string"),
        ({"tokens": None}, "tokenizer.ggml.tokens is missing"),
        ({"tokens": []}, "tokenizer.ggml.tokens is empty"),
        ({"tokens": "abc"}, "tokenizer.ggml.tokens is not an array"),
        ({"tokens": [1, 2]}, "tokenizer.ggml.tokens is not a string"),
        ({"tokens": [*TOKENS[:-1], b"\xff"]}, "tokenizer.ggml.tokens is not valid UTF-8"),
        ({"tokens": [*TOKENS[:-1], TOKENS[0]]}, "tokenizer.ggml.tokens has '<|endoftext|>' twice"),
        ({"token_type": TYPES[:-1]}, "token_type has"),
        ({"token_type": [9, *TYPES[1:]]}, "token_type of token 0 is 9"),
        ({"token_type": [6, *TYPES[1:]]}, "says token 0 is a byte"),
        ({"token_type": array("B", TYPES)}, "token_type is not an array of 32-bit integers"),
        ({"token_type": b"x"}, "token_type is not an array of 32-bit integers"),
        ({"token_type": StringArray(b"", array("Q"))}, "token_type is not an array of 32-bit integers"),
        ({"token_type": tuple(array("i", [1]) for _ in TOKENS)}, "token_type is not an array of 32-bit integers"),
        ({"merges": ["x" * 9999]}, "merges has an entry without two sides at 0: 'xxx"),
        ({"tokens": ["x" * 9999] * 2}, "tokens has 'xxx"),
        ({"merges": None}, "tokenizer.ggml.merges is missing"),
        ({"merges": [*MERGES, "ab"]}, "tokenizer.ggml.merges has an entry without two sides"),
        ({"merges": [*MERGES, " ab"]}, "tokenizer.ggml.merges has an entry without two sides"),
        ({"merges": ["a b c"]}, "tokenizer.ggml.merges has an entry without two sides"),
        ({"eos_token_id": None}, "tokenizer.ggml.eos_token_id is missing"),
        ({"eos_token_id": 999999}, "tokenizer.ggml.eos_token_id is 999999"),
        ({"eot_token_id": -1}, "tokenizer.ggml.eot_token_id is -1"),
        ({"bos_token_id": len(TOKENS)}, "tokenizer.ggml.bos_token_id is"),
        ({"padding_token_id": "x"}, "tokenizer.ggml.padding_token_id is not a token id"),
        ({"fim_pad_token_id": 1 << 40}, "tokenizer.ggml.fim_pad_token_id is"),
        ({"add_bos_token": 1}, "tokenizer.ggml.add_bos_token is an integer, not true or false"),
        ({"suppress_tokens": [1]}, "tokenizer.ggml.suppress_tokens"),
        ({"suppress_tokens": 5}, "tokenizer.ggml.suppress_tokens is an integer, not an array"),
        ({"suppress_tokens": "x"}, "tokenizer.ggml.suppress_tokens is a string, not an array"),
        ({"general.name": "Modern-BERT", "tokens": [*TOKENS[:-1], "[MASK]"]}, "general.name"),
    ],
)
def test_a_bad_vocabulary_is_refused_with_its_key(changes, says):
    with pytest.raises(Refused) as refusal:
        read(**changes)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 200


def test_bytes_and_str_are_the_same():
    encoded = [token.encode() for token in TOKENS]
    merges = [merge.encode() for merge in MERGES]
    assert read(tokens=encoded, merges=merges, token_type=array("i", TYPES), model=b"gpt2") == read()


def test_without_a_name_the_pre_tokenizer_is_the_default_one():
    assert read(pre=None) == read(pre="") == read(pre="default") != read()


def test_types_may_be_missing():
    assert read(token_type=None).end_of_generation


def test_end_of_generation_is_what_names_and_ids_say():
    plain = TOKENS.index("a")
    named = {TOKENS[id] for id in read(eot_token_id=plain).end_of_generation}
    assert {"<|endoftext|>", "<|im_end|>", "a"} <= named
    # Two tokens by the name of a repository mark: the one a hash table of the tokens meets first ends an answer.
    assert len(named & {"<|repo_name|>", "<reponame>"}) == 1
