"""The kinds of vocabulary: what `tokenizer.ggml.model` and `tokenizer.ggml.pre` decide, as in llama.cpp b11192."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class VocabularyKind:
    """A value of `tokenizer.ggml.model`: which arrays and options its header has, which tokens it has to name, and what
    holds where it says nothing (of the tokens, by their keys). `encloses`: a text begins with the beginning-of-sequence
    token and ends with the separator, whatever the header says. `pretokenizer`: that of every such vocabulary,
    whatever the header says."""

    required: tuple[str, ...]
    defaults: Mapping[str, int]
    add_bos: bool = False
    encloses: bool = False
    space_prefix: bool = False
    clean_spaces: bool = False
    merges: bool = False
    pretokenizer: str | None = None
    scores: bool = False
    normalizer: bool = False


BOS, EOS, UNKNOWN, SEPARATOR = "bos_token_id", "eos_token_id", "unknown_token_id", "seperator_token_id"

KINDS: Mapping[str, VocabularyKind] = {
    "gpt2": VocabularyKind(required=(EOS,), defaults={BOS: 11}, merges=True),
    "llama": VocabularyKind(
        required=(EOS,), defaults={BOS: 1, EOS: 2, UNKNOWN: 0}, add_bos=True, space_prefix=True, scores=True
    ),
    "bert": VocabularyKind(
        required=(BOS, UNKNOWN, SEPARATOR),
        defaults={BOS: 101, UNKNOWN: 100, SEPARATOR: 102},
        encloses=True,
        clean_spaces=True,
        normalizer=True,
    ),
    "gemma4": VocabularyKind(required=(BOS,), defaults={}, merges=True, pretokenizer="gemma4"),
}
"""Byte-level BPE, SentencePiece's merges by score, WordPiece, and BPE of characters."""


@dataclass(frozen=True)
class Normalizer:
    """What is done to a text before WordPiece splits it."""

    lower_case: bool
    strip_accents: bool


@dataclass(frozen=True)
class Pretokenizer:
    """A value of `tokenizer.ggml.pre`: the native splitter's name, whether a word that is a token is that token, if
    a text begins with the beginning-of-sequence token where the header says nothing, and whether spaces are left out
    where tokens are joined to a text (spaces.cleaned). Without a splitter merges join characters instead of bytes, and
    words end at line ends alone. `always_bos`: a text begins with that token whatever the header says."""

    splitter: str | None
    whole_words: bool = False
    add_bos: bool = False
    clean_spaces: bool = False
    always_bos: bool = False


_LLAMA3 = Pretokenizer("llama3", whole_words=True, add_bos=True, clean_spaces=True)

PRETOKENIZERS: Mapping[str, Pretokenizer] = {
    **dict.fromkeys(("smollm", "command-r"), Pretokenizer("digits")),
    **dict.fromkeys(
        ("starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"),
        Pretokenizer("digits", clean_spaces=True),
    ),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open"), Pretokenizer("qwen2")),
    **dict.fromkeys(("stablelm2", "megrez"), Pretokenizer("qwen2", clean_spaces=True)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1"), _LLAMA3),
    **dict.fromkeys(("pixtral", "midm-2.0", "lfm2", "jina-v5-nano"), _LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe"), Pretokenizer("llama3", clean_spaces=True)),
    **dict.fromkeys(
        ("gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum"),
        Pretokenizer("gpt2", clean_spaces=True),
    ),
    **dict.fromkeys(("modern-bert", "exaone4", "mpt", "olmo", "jais"), Pretokenizer("gpt2", clean_spaces=True)),
    **dict.fromkeys(("trillion", "granite-docling"), Pretokenizer("gpt2")),
    **dict.fromkeys(("glm4", "chatglm-bpe"), Pretokenizer("llama3", clean_spaces=True)),
    "tekken": Pretokenizer("tekken", whole_words=True, add_bos=True),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), Pretokenizer("gpt4o")),
    **dict.fromkeys(("jina-v1-en", "jina-v2-code", "roberta-bpe"), Pretokenizer("gpt2", clean_spaces=True)),
    **dict.fromkeys(
        ("gemma4", "granite-embed-multi-311m"),
        Pretokenizer(None, whole_words=True, clean_spaces=True, always_bos=True),
    ),
    "sarvam-moe": Pretokenizer(None),
    "default": Pretokenizer("default", clean_spaces=True),
    "falcon": Pretokenizer("falcon", clean_spaces=True),
    "deepseek-llm": Pretokenizer("deepseek-llm"),
    "deepseek-coder": Pretokenizer("deepseek-coder"),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), Pretokenizer("deepseek3")),
    "spark2_5": Pretokenizer("spark"),
    "afmoe": Pretokenizer("afmoe"),
    "qwen35": Pretokenizer("qwen35"),
    **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe", "grok-2"), Pretokenizer("qwen2")),
    "ufakzeka": Pretokenizer("ufakzeka"),
    "seed-coder": Pretokenizer("seed"),
    "minicpm5": Pretokenizer("minicpm5", whole_words=True, clean_spaces=True),
    "laguna": Pretokenizer("laguna"),
    "exaone-moe": Pretokenizer("exaone-moe", clean_spaces=True),
    "granite-embed-multi-97m": Pretokenizer("granite", whole_words=True),
    **dict.fromkeys(("tiny_aya", "cohere2moe"), Pretokenizer("tiny-aya")),
    "youtu": Pretokenizer("youtu", whole_words=True),
    "kimi-k2": Pretokenizer("kimi"),
    "superbpe": Pretokenizer("superbpe"),
    "chameleon": Pretokenizer("chameleon", add_bos=True),
    "poro-chat": Pretokenizer("bloom"),
    **dict.fromkeys(("bloom", "gpt3-finnish"), Pretokenizer("bloom", clean_spaces=True)),
    "viking": Pretokenizer("viking"),
    "jais-2": Pretokenizer("jais2", clean_spaces=True),
}

UNNAMED_PRETOKENIZER = "default"
"""That of a vocabulary whose header names none: files from before the key existed."""

COMMON_PRETOKENIZERS = ("gpt-2", "llama-bpe", "qwen2", "smollm", "starcoder")
"""Those that an error names."""
