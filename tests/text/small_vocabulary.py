"""A small gpt2 vocabulary made here, with everything in it that a tokenizer can get wrong.

Six bytes have no token; some merges make strings that are no tokens; special tokens overlap, contain one another, and
are of every type; several tokens claim one purpose by their name.
"""

import collections
import struct
from pathlib import Path
from typing import Any

CORPUS = (
    "the cat sat on the mat, and the dog's dinner wasn't there; they'll say it's 1234 or 5678 -- don't\n\n"
    "  def f(x):\n    return x + 1\r\n\tgrüße an élève, naïve café; 日本語 日本 한국어 🙂🙂 <|x|> [tool] == != ::\n"
) * 3
MISSING_BYTES = (0x07, 0x11, 0x7F, 0xC0, 0xF5, 0xE1)
N_MERGES = 220
SPECIALS = {
    "<|endoftext|>": 3,
    "<|im_start|>": 3,
    "<|im_end|>": 1,
    "<|x|>": 4,
    "<|x|><|y|>": 3,
    "<|y|>": 4,
    "|><|": 3,
    "aa": 4,
    "aab": 4,
    "baa": 3,
    "<unk>": 2,
    "<unused_1>": 5,
    "<0x41>": 6,
    "<PRE>": 1,
    "<fim_prefix>": 1,
    "<|fim_prefix|>": 1,
    "<|repo_name|>": 1,
    "<reponame>": 1,
    "  ": 4,
    "日本": 4,
    "": 1,
    "snow☃man": 1,
}
NO_TOKEN = ("Ġthe", "Ġca", "Ċ")  # made by merges, but not tokens


def byte_characters() -> list[str]:
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(256)]


def train(text: str, n_merges: int) -> list[tuple[str, str]]:
    """Byte-pair merges of `text`, the most frequent pair first."""
    characters = byte_characters()
    words = collections.Counter(text.replace(" ", "\0 ").split("\0"))
    parts = {word: [characters[byte] for byte in word.encode()] for word in words}
    merges: list[tuple[str, str]] = []
    while len(merges) < n_merges:
        pairs: collections.Counter[tuple[str, str]] = collections.Counter()
        for word, count in words.items():
            for pair in zip(parts[word], parts[word][1:], strict=False):
                pairs[pair] += count
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for word, old in parts.items():
            parts[word] = _merged(old, best)
    return merges


def _merged(parts: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    for part in parts:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out


def metadata(pretokenizer: str = "qwen2") -> dict[str, Any]:
    """The metadata of a GGUF file with this vocabulary."""
    merges = train(CORPUS, N_MERGES)
    characters = [c for byte, c in enumerate(byte_characters()) if byte not in MISSING_BYTES]
    made = [left + right for left, right in merges if left + right not in NO_TOKEN]
    ordinary = [token for token in dict.fromkeys([*characters, *made]) if token not in SPECIALS]
    tokens = [*SPECIALS, *ordinary]
    return {
        "general.architecture": "llama",
        "general.name": "small",
        "llama.context_length": 64,
        "llama.embedding_length": 32,
        "llama.block_count": 1,
        "llama.feed_forward_length": 32,
        "llama.attention.head_count": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pretokenizer,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [*SPECIALS.values(), *([1] * len(ordinary))],
        "tokenizer.ggml.merges": [f"{left} {right}" for left, right in merges] + ["x y", "no where"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
    }


def write_gguf(path: Path, values: dict[str, Any]) -> None:
    """A GGUF file of metadata alone."""
    data = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(values))
    for key, value in values.items():
        data += _string(key)
        if isinstance(value, list):
            strings = isinstance(value[0], str)
            data += struct.pack("<IIQ", 9, 8 if strings else 5, len(value))
            data += b"".join(_string(item) if strings else struct.pack("<i", item) for item in value)
        elif isinstance(value, str):
            data += struct.pack("<I", 8) + _string(value)
        elif isinstance(value, bool):
            data += struct.pack("<I?", 7, value)
        else:
            data += struct.pack(
                "<If" if isinstance(value, float) else "<II", 6 if isinstance(value, float) else 4, value
            )
    path.write_bytes(data)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
