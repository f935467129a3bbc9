# ruff: noqa: E501
"""Random texts that look for trouble: every plane, marks, runs of white space, contractions, special tokens, bad bytes."""

import random
from collections.abc import Sequence

WORDS = (
    "the", "Hello", "world", "it's", "IT'S", "don't", "we'LL", "they'Re", "I'vE", "'s", "'S", "'ſ", "o'clock", "x=1;", "foo_bar",
    "1234", "３", "٤٥", "Ⅷ", "½", "naïve", "cafe\u0301", "日本語", "한국어", "हिन्दी", "שלום", "العربية", "ไทย", "👩\u200d👩\u200d👧", "🇩🇪",
    "𝔘𝔫𝔦", "𝟙𝟚", "\u0130", "\u212a", "<think>", "</think>", "<tool_call>", "<|", "|>", "\ufffd", "\ufeff", "\u0378", "\U0010ffff",
)  # fmt: skip
SPACES = (
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "\v",
    "\f",
    "\x85",
    "\xa0",
    "\u2003",
    "\u3000",
    "\u2028",
    "\u200b",
    " \n ",
    "\n  ",
    "\x1c",
)


def random_character(random_: random.Random) -> str:
    top = random_.choice((0x80, 0x250, 0x530, 0x3000, 0x10000, 0x20000, 0x110000))
    code_point = random_.randrange(top)
    return " " if 0xD800 <= code_point < 0xE000 else chr(code_point)


def random_text(random_: random.Random, specials: Sequence[str]) -> str:
    parts = []
    for _ in range(random_.randint(1, 12)):
        kind = random_.randrange(10)
        if kind < 3:
            parts.append(random_.choice(WORDS))
        elif kind < 5:
            parts.append(random_.choice(SPACES))
        elif kind < 6:
            parts.append(random_.choice(specials))
        elif kind < 7:
            parts.append(random_.choice((*WORDS, *SPACES, "a", "ab", "0", "!", "=")) * random_.randint(2, 9))
        else:
            parts.append("".join(random_character(random_) for _ in range(random_.randint(1, 6))))
    return "".join(parts)


def random_bytes(random_: random.Random, specials: Sequence[str]) -> bytes:
    """Text with bytes changed, dropped or put in; never a value past U+10FFFF, where the reference throws."""
    data = bytearray(random_text(random_, specials).encode())
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(data) + 1)
        change = random_.randrange(3)
        if change == 0:
            data[at:at] = bytes(
                [random_.choice((0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xEF, 0xF0, 0xF8, 0xFF, 0xA0, 0x41))]
            )
        elif change == 1:
            del data[at : at + 1]
        elif at < len(data):
            data[at] = random_.choice((0x80, 0xC2, 0xE0, 0xED, 0xF0, 0x20))
    return bytes(data).replace(b"\xf4", b"\xf0")
