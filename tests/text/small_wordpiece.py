"""A small WordPiece vocabulary made here: words, how they continue, letters of several scripts, special tokens."""

from typing import Any

SPECIALS = {"[PAD]": 3, "[UNK]": 3, "[CLS]": 3, "[SEP]": 3, "[MASK]": 3, "<|x|>": 4, "[unused0]": 1}
WORDS = (
    "hello",
    "hel",
    "he",
    "cafe",
    "naive",
    "i",
    "ss",
    "日",
    "本",
    "한",
    "!",
    "'",
    "+",
    "=",
    "1",
    "12",
    "ⅷ",
    "€",
    "ⲁ",
)
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789àéßıſκд어㎏\u1112\u0378"
TOKENS = [*SPECIALS, *(f"\u2581{word}" for word in dict.fromkeys((*WORDS, *LETTERS))), "llo", "ing", "lo", *LETTERS]
IDS = {token: id for id, token in enumerate(TOKENS)}


def metadata(**changes: Any) -> dict[str, Any]:
    """The metadata of a GGUF file with this vocabulary; None leaves a key out."""
    keys = {
        "model": "bert",
        "tokens": TOKENS,
        "token_type": [*SPECIALS.values(), *[1] * (len(TOKENS) - len(SPECIALS))],
        "bos_token_id": IDS["[CLS]"],
        "unknown_token_id": IDS["[UNK]"],
        "seperator_token_id": IDS["[SEP]"],
        "padding_token_id": IDS["[PAD]"],
        **changes,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}
