"""Against the reference build itself, live: tokens, pieces and prompts."""

import random
from types import SimpleNamespace

import pytest

from bankml.text.kinds import PRETOKENIZERS
from bankml.text.tokenizer import Tokenizer
from bankml.text.vocabulary import CONTROL, UNKNOWN, USER_DEFINED
from tests import oracle
from tests.text.gguf_metadata import read_header
from tests.text.reference import ReferenceTokenizer
from tests.text.small_characters import metadata as character_metadata
from tests.text.small_vocabulary import metadata, write_gguf
from tests.text.small_wordpiece import metadata as wordpiece_metadata
from tests.text.strings import random_bytes, random_text

pytestmark = pytest.mark.oracle
N_TEXTS = 20_000

OVERLONG_SPACES = (b"\xc0\xa0", b"\xe0\x80\xa0", b"\xf0\x80\x80\xa0")
"""Become spaces after the reference has replaced those of the text; merging characters it then aborts."""


def compare(tokenizer: Tokenizer, reference: ReferenceTokenizer, seed: int) -> None:
    vocabulary = tokenizer.vocabulary
    merges_characters = vocabulary.pretokenizer is not None and not vocabulary.byte_level
    for id in range(reference.n_vocab):
        assert tokenizer.piece(id) == reference.piece(id, False)
        assert tokenizer.spelling(id) == reference.piece(id, True)
        assert tokenizer.is_end_of_generation(id) == reference.is_end_of_generation(id)
    cut = CONTROL | UNKNOWN | USER_DEFINED
    specials = [text for text, a in zip(vocabulary.tokens, vocabulary.attributes, strict=True) if a & cut]
    random_ = random.Random(seed)
    for i in range(N_TEXTS):
        data = random_bytes(random_, specials) if i % 4 == 0 else random_text(random_, specials).encode()
        special = random_.random() < 0.6
        if merges_characters and any(space in data for space in OVERLONG_SPACES):
            continue
        assert tokenizer.encode(data, special) == reference.encode(data, special), f"seed {seed}: {data!r}"


BYTE_LEVEL = {kind: name for name, kind in PRETOKENIZERS.items() if kind.splitter is not None}


@pytest.mark.parametrize("pretokenizer", sorted(BYTE_LEVEL.values()))
def test_the_small_vocabulary(pretokenizer, tmp_path):
    path, values = tmp_path / "small.gguf", metadata(pretokenizer)
    write_gguf(path, values)
    seed = random.randrange(1 << 30)
    compare(Tokenizer.from_header(SimpleNamespace(metadata=values)), ReferenceTokenizer(path), seed)


def test_the_vocabularies_of_real_models():
    """Every GGUF that there is to compare on."""
    paths = sorted(oracle.MODELS.glob("*.gguf")) if oracle.MODELS.is_dir() else []
    if not paths:
        pytest.skip(f"no models in {oracle.MODELS}")
    for path in paths:
        compare(Tokenizer.from_header(read_header(path)), ReferenceTokenizer(path), random.randrange(1 << 30))


@pytest.mark.parametrize("flags", [{}, {"normalizer.lowercase": False}, {"normalizer.strip_accents": False}])
def test_word_pieces(flags, tmp_path):
    path, values = tmp_path / "small.gguf", {**metadata(), **wordpiece_metadata(**flags)}
    write_gguf(path, values)
    tokenizer, reference = Tokenizer.from_header(SimpleNamespace(metadata=values)), ReferenceTokenizer(path)
    compare(tokenizer, reference, random.randrange(1 << 30))
    for code_point in (*range(0xD800), *range(0xE000, 0x32000), *range(0xE0000, 0xE0200)):
        text = f"a{chr(code_point)}b".encode()
        assert tokenizer.encode(text) == reference.encode(text, True), hex(code_point)


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"model": "gpt2", "pre": "granite-embed-multi-311m"},
        {"model": "gpt2", "pre": "sarvam-moe", "add_bos_token": False},
    ],
)
def test_merged_characters(kind, tmp_path):
    path, values = tmp_path / "small.gguf", {**metadata(), **character_metadata(**kind)}
    if not kind:
        del values["tokenizer.ggml.pre"]
    write_gguf(path, values)
    tokenizer = Tokenizer.from_header(SimpleNamespace(metadata=values))
    compare(tokenizer, ReferenceTokenizer(path), random.randrange(1 << 30))
