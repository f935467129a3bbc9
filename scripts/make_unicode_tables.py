#!/usr/bin/env python3
"""Writes native/tokenizer/unicode_tables.h: the classes of code points the pre-tokenizers ask for.

    pip install unicodedata2==15.1.0 && python scripts/make_unicode_tables.py

The reference tokenizers know exactly Unicode 15.1.0, so the data comes from that release of `unicodedata2` and never
from the running Python, whose `unicodedata` follows the interpreter's version. tests/text/test_unicode_tables.py holds
the sha256 of the file this writes.
"""

from pathlib import Path

import unicodedata2

OUTPUT = Path(__file__).resolve().parent.parent / "native" / "tokenizer" / "unicode_tables.h"
VERSION = "15.1.0"
OTHER, LETTER, NUMBER, SPACE, MARK, PUNCTUATION, SYMBOL = range(7)
CLASSES = {"L": LETTER, "N": NUMBER, "M": MARK, "P": PUNCTUATION, "S": SYMBOL}
N_CODE_POINTS = 0x110000


def character_class(code_point: int) -> int:
    """White_Space is U+0009..000D, U+0085 and the whole category Z; the other classes are L, N, M, P and S."""
    category = unicodedata2.category(chr(code_point))
    if category[0] == "Z" or 0x09 <= code_point <= 0x0D or code_point == 0x85:
        return SPACE
    return CLASSES.get(category[0], OTHER)


def ranges() -> list[tuple[int, int]]:
    """(first code point, class) of each run of one class, in order; a run ends where the next begins."""
    runs: list[tuple[int, int]] = []
    for code_point in range(N_CODE_POINTS):
        kind = character_class(code_point)
        if not runs or runs[-1][1] != kind:
            runs.append((code_point, kind))
    return runs


def header(runs: list[tuple[int, int]]) -> str:
    # One 32-bit word a run: the class in the low three bits, the first code point above them.
    words = [f"0x{(first << 3) | kind:06X}" for first, kind in runs]
    rows = [", ".join(words[i : i + 12]) for i in range(0, len(words), 12)]
    body = ",\n    ".join(rows)
    return f"""// Made by scripts/make_unicode_tables.py from Unicode {VERSION}; not to be edited.
#pragma once
#include <cstdint>

namespace bankml::unicode {{

// A run of code points of one class: first << 3 | class (0 other, 1 letter, 2 number, 3 white space, 4 mark,
// 5 punctuation, 6 symbol).
inline constexpr std::uint32_t RUNS[] = {{
    {body}}};

}}  // namespace bankml::unicode
"""


def main() -> None:
    if unicodedata2.unidata_version != VERSION:
        raise SystemExit(f"unicodedata2 has Unicode {unicodedata2.unidata_version}; {VERSION} is needed")
    OUTPUT.write_text(header(ranges()))


if __name__ == "__main__":
    main()
