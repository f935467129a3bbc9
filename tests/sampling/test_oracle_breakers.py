"""DRY's sequence breakers, found in the texts of a vocabulary, against llama.cpp's own search."""

import random
from dataclasses import replace

import gguf
import numpy as np
import pytest

from bankml.sampling.chain import SamplerChain
from bankml.sampling.vocabulary import SamplerVocabulary
from tests.sampling import cases
from tests.sampling.reference import ReferenceVocabulary, load

pytestmark = pytest.mark.oracle

WORDS = [
    " the",
    " a",
    "\n\n",
    ": ",
    '":',
    '"\n',
    "**",
    "ab",
    "abc",
    "bc",
    "é",
    "ét",
    "日",
    "日本",
    "\n\n\n",
    " : ",
    "***",
]
STRINGS = [
    "\n",
    ":",
    '"',
    "*",
    " ",
    "ab",
    "abc",
    "abcab",
    "é",
    "été",
    "日本語",
    "x" * 60,
    "",
    "é" * 25,
    "the end",
    "\n\n:",
]


def stand_ins() -> list[str]:
    """The character GPT-2's vocabularies write for each byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(256, 512))
    return [chr(b) if b in shown else chr(next(hidden)) for b in range(256)]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> ReferenceVocabulary:
    """A byte-level vocabulary of 256 bytes, a few merged words and one control token."""
    of_byte = stand_ins()
    tokens = list(of_byte)
    merges = []
    for word in WORDS:
        text = "".join(of_byte[b] for b in word.encode())
        for end in range(2, len(text) + 1):
            if text[:end] not in tokens:
                tokens.append(text[:end])
                merges.append(f"{text[: end - 1]} {text[end - 1]}")
    tokens.append("<|the end|>")
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - 1) + [3])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return ReferenceVocabulary(load(), path)


def test_breakers_of_a_vocabulary(vocabulary: ReferenceVocabulary) -> None:
    n = vocabulary.n_vocab
    vocabulary = SamplerVocabulary(n, vocabulary.tokenize, lambda: [vocabulary.text(token) for token in range(n)])
    chance = random.Random(4)
    changed = 0
    for i in range(400):
        r = np.random.default_rng(i)
        strings = tuple(chance.sample(STRINGS, chance.randint(1, 4)))
        params = replace(cases.alone("dry", r, n).params, dry_sequence_breakers=strings)
        text = "".join(chance.choices([*WORDS, "x", *STRINGS], k=chance.randint(3, 12)))
        history = vocabulary.tokenize(text) * chance.randint(1, 3)
        row = cases.logits(r, n)

        reference = vocabulary.dry(params)
        ours = SamplerChain(params, vocabulary)
        for token in history:
            reference.accept(token)
        ours.accept_all(history)
        _, left = reference.apply(row)
        ours.native.apply(row)
        assert ours.native.candidates()[1].tobytes() == left["logit"].tobytes(), (strings, text)
        changed += left["logit"].tobytes() != row.tobytes()
    assert changed > 100
