#!/usr/bin/env python3
"""Writes native/tokenizer/unicode_tables.h: what tokenizers need to know of code points, classes, case and accents.

    pip install unicodedata2==15.1.0 && python scripts/make_unicode_tables.py

The reference tokenizers know exactly Unicode 15.1.0, so the data comes from that release of `unicodedata2` and never
from the running Python, whose `unicodedata` follows the interpreter's version. Only lower case is `str.lower`'s: no
version has changed it for a letter that existed in 15.1. tests/text/test_unicode_tables.py holds
the sha256 of the file this writes.
"""

from pathlib import Path

import unicodedata2

OUTPUT = Path(__file__).resolve().parent.parent / "native" / "tokenizer" / "unicode_tables.h"
VERSION = "15.1.0"
OTHER, LETTER, NUMBER, SPACE, MARK, PUNCTUATION, SYMBOL, CONTROL = range(8)
CLASSES = {"L": LETTER, "N": NUMBER, "M": MARK, "P": PUNCTUATION, "S": SYMBOL, "C": CONTROL}
N_CODE_POINTS = 0x110000


def character_class(code_point: int) -> int:
    """White_Space is U+0009..000D, U+0085 and the whole category Z; the other classes are L, N, M, P, S and C,
    except what is unassigned."""
    category = unicodedata2.category(chr(code_point))
    if category == "Cn":
        return OTHER
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


def lower_case() -> dict[int, int]:
    """The first code point of what each assigned one is in lower case, where that is another."""
    assigned = (code_point for code_point in range(N_CODE_POINTS) if unicodedata2.category(chr(code_point)) != "Cn")
    lower = {code_point: ord(chr(code_point).lower()[0]) for code_point in assigned}
    return {code_point: to for code_point, to in lower.items() if to != code_point}


def bases() -> dict[int, int]:
    """The first code point of each one's canonical decomposition, where that is another."""
    firsts = {code_point: ord(unicodedata2.normalize("NFD", chr(code_point))[0]) for code_point in range(N_CODE_POINTS)}
    return {code_point: to for code_point, to in firsts.items() if to != code_point}


def mapping_words(mapping: dict[int, int], step: int) -> list[str]:
    """A run is a code point, how many follow it, and what it maps to; each further one maps to `step` more."""
    runs: list[list[int]] = []
    for code_point, to in sorted(mapping.items()):
        if runs and (runs[-1][0] + runs[-1][1] + 1, runs[-1][2] + (runs[-1][1] + 1) * step) == (code_point, to):
            runs[-1][1] += 1
        else:
            runs.append([code_point, 0, to])
    assert max(more for _, more, _ in runs) < 1 << 11
    return [f"0x{first << 32 | more << 21 | to:014X}" for first, more, to in runs]


def rows(words: list[str], a_row: int) -> str:
    return ",\n    ".join(", ".join(words[i : i + a_row]) for i in range(0, len(words), a_row))


def header(runs: list[tuple[int, int]]) -> str:
    # One 32-bit word a run: the class in the low three bits, the first code point above them.
    words = [f"0x{(first << 3) | kind:06X}" for first, kind in runs]
    return f"""// Made by scripts/make_unicode_tables.py from Unicode {VERSION}; not to be edited.
#pragma once
#include <cstdint>

namespace bankml::unicode {{

// A run of code points of one class: first << 3 | class (0 other, 1 letter, 2 number, 3 white space, 4 mark,
// 5 punctuation, 6 symbol, 7 control).
inline constexpr std::uint32_t RUNS[] = {{
    {rows(words, 12)}}};

// Runs of code points that have a lower case: first << 32 | how many follow << 21 | the first one's; each further one
// has the next.
inline constexpr std::uint64_t LOWER_CASE[] = {{
    {rows(mapping_words(lower_case(), 1), 6)}}};

// Runs of code points that decompose: first << 32 | how many follow << 21 | what the decomposition of all begins with.
inline constexpr std::uint64_t BASES[] = {{
    {rows(mapping_words(bases(), 0), 6)}}};

}}  // namespace bankml::unicode
"""


def main() -> None:
    if unicodedata2.unidata_version != VERSION:
        raise SystemExit(f"unicodedata2 has Unicode {unicodedata2.unidata_version}; {VERSION} is needed")
    OUTPUT.write_text(header(ranges()))


if __name__ == "__main__":
    main()
