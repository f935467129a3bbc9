"""A small vocabulary of merged characters made here: some bytes have no token, some merges make no token."""

from typing import Any

SPECIALS = {"<pad>": 3, "<eos>": 3, "<bos>": 3, "<unk>": 3, "<turn|>": 3, "<|x|>": 4, "  ": 4}
BYTES = {f"<0x{byte:02X}>": 6 for byte in range(256) if byte not in (0x07, 0xC3, 0x90)}
MERGES = (
    ("\u2581", "\u2581"),
    ("h", "e"),
    ("l", "l"),
    ("he", "ll"),
    ("hell", "o"),
    ("\u2581", "hello"),
    ("o", "\u2581"),
    ("\n", "\n"),
    ("\n\n", "\n"),
    ("日", "本"),
    ("e", "\u0301"),
    ("a", "a"),
    ("aa", "aa"),
    ("q", "u"),  # neither q nor qu is a token
    ("z", "z"),  # zz is no token
    ("<0x0", "7>"),
)
LETTERS = "abcdehlouxz \u2581\n\t日本é\u0301🙂!1"
_MADE = [left + right for left, right in MERGES if left + right not in ("qu", "zz", "\n\n\n", "<0x07>")]
TOKENS = list(dict.fromkeys([*SPECIALS, *BYTES, *LETTERS, *_MADE, "\n\n\n\n"]))
IDS = {token: id for id, token in enumerate(TOKENS)}


def metadata(**changes: Any) -> dict[str, Any]:
    """The metadata of a GGUF file with this vocabulary; None leaves a key out."""
    types = {**SPECIALS, **BYTES}
    keys = {
        "model": "gemma4",
        "tokens": TOKENS,
        "token_type": [types.get(token, 1) for token in TOKENS],
        "merges": [f"{left} {right}" for left, right in MERGES],
        "bos_token_id": IDS["<bos>"],
        "eos_token_id": IDS["<eos>"],
        "unknown_token_id": IDS["<unk>"],
        **changes,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}
