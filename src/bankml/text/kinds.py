"""The kinds of vocabulary: what `tokenizer.ggml.model` and `tokenizer.ggml.pre` decide, as in llama.cpp b11192."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class VocabularyKind:
    """A value of `tokenizer.ggml.model`: what holds where the header says nothing. None: the header has to."""

    bos: int | None
    eos: int | None
    unknown: int | None
    add_bos: bool
    merges: bool


KINDS: Mapping[str, VocabularyKind] = {
    "gpt2": VocabularyKind(bos=11, eos=None, unknown=None, add_bos=False, merges=True),
    "llama": VocabularyKind(bos=1, eos=2, unknown=0, add_bos=True, merges=False),
}
"""Byte-level BPE, and SentencePiece's merges by score."""


@dataclass(frozen=True)
class Pretokenizer:
    """A value of `tokenizer.ggml.pre`: the native splitter's name, whether a word that is a token is that token, and
    whether a text begins with the beginning-of-sequence token where the header says nothing."""

    splitter: str
    whole_words: bool = False
    add_bos: bool = False


def _names(splitter: str, *names: str, whole_words: bool = False, add_bos: bool = False) -> dict[str, Pretokenizer]:
    return dict.fromkeys(names, Pretokenizer(splitter, whole_words, add_bos))


PRETOKENIZERS: Mapping[str, Pretokenizer] = {
    **_names("digits", "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"),
    **_names("qwen2", "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "solar-open", "megrez"),
    **_names(
        "llama3", "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano", whole_words=True, add_bos=True,
    ),
    **_names("llama3", "dbrx", "smaug-bpe"),
    **_names(
        "gpt2", "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
        "modern-bert", "exaone4", "mpt", "olmo", "jais", "trillion", "granite-docling",
    ),
}  # fmt: skip

COMMON_PRETOKENIZERS = ("gpt-2", "llama-bpe", "qwen2", "smollm", "starcoder")
"""Those that an error names."""
