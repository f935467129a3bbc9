"""Writes native/formats/iq/codes.h: the value groups that the IQ types index, read off the reference library.

    python -m scripts.make_iq_grids

Needs `make oracle`. Every index is put into a block of which everything else is zero, the block is dequantized, and the
values are written as digits of a number in base 3 or 8, the first value in the lowest digit.
"""

from collections.abc import Callable, Iterator

import numpy as np

from tests.ggml import Backend
from tests.oracle import ROOT

ONE = np.float16(1).tobytes()
THREE, EIGHT = (8, 25, 43), (4, 12, 20, 28, 36, 44, 52, 62)


def words(index: int) -> bytes:
    return index.to_bytes(2, "little")


# name: type, indices, values a group, what a digit stands for, the block of an index, and the value of a weight.
Block = Callable[[int], bytes]
Value = Callable[[float], float]
GRIDS: dict[str, tuple[int, int, int, tuple[int, ...], Block, Value]] = {
    "iq2_xxs": (16, 256, 8, THREE, lambda i: ONE + bytes([i]) + bytes(63), lambda y: y / 0.125),
    "iq2_xs": (17, 512, 8, THREE, lambda i: ONE + words(i) + bytes(70), lambda y: y / 0.125),
    "iq2_s": (22, 1024, 8, THREE, lambda i: ONE + bytes([i & 255]) + bytes(63) + bytes([i >> 8]) + bytes(15),
              lambda y: y / 0.125),
    "iq3_xxs": (18, 256, 4, EIGHT, lambda i: ONE + bytes([i]) + bytes(95), lambda y: y / 0.25),
    "iq3_s": (21, 512, 4, (1, 3, 5, 7, 9, 11, 13, 15),
              lambda i: ONE + bytes([i & 255]) + bytes(63) + bytes([i >> 8]) + bytes(43), lambda y: y),
    "iq1": (19, 2048, 8, (-1, 0, 1), lambda i: ONE + bytes([i & 255]) + bytes(31) + words(i >> 8) + bytes(14),
            lambda y: y - 0.125),
}  # fmt: skip


def codes(backend: Backend, name: str) -> Iterator[int]:
    kind, count, size, digits, block, value = GRIDS[name]
    raw = np.frombuffer(b"".join(block(i) for i in range(count)), np.uint8).reshape(count, -1)
    for group in backend.get_rows(kind, raw, 256)[:, :size]:
        yield sum(digits.index(round(value(float(y)))) * len(digits) ** i for i, y in enumerate(group))


def main() -> None:
    backend, lines = Backend(), []
    for name in GRIDS:
        found = list(codes(backend, name))
        lines.append(f"inline constexpr std::uint16_t {name}_codes[{len(found)}] = {{")
        lines += ["    " + ", ".join(map(str, found[i : i + 18])) + "," for i in range(0, len(found), 18)]
        lines += ["};", ""]
    head = "// Written by scripts/make_iq_grids.py.\n#pragma once\n#include <cstdint>\n\nnamespace bankml {\n\n"
    path = ROOT / "native" / "formats" / "iq" / "codes.h"
    path.write_text(head + "\n".join(lines) + "\n}  // namespace bankml\n")


if __name__ == "__main__":
    main()
