"""The native products beside the reference library's own, through ctypes: same bytes, same process, alternating.

    python -m benchmarks.kernels [--rounds 9]

One thread each. Prints nanoseconds a block and column, the ratio, and the rate at which weights are read.
Needs `make oracle`.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bankml import _native
from tests.ggml import Ggml

ROWS, K = 8192, 2048
WEIGHTS = {"Q1_0": (41, 128), "Q2_0": (42, 64), "F16": (1, 32)}


@dataclass(frozen=True)
class Figure:
    """One measured thing: median nanoseconds a block of each side, and ratios (theirs / ours) round by round."""

    name: str
    ours: float
    theirs: float
    ratios: tuple[float, ...]
    gigabytes: float

    def row(self) -> str:
        low, middle, high = min(self.ratios), statistics.median(self.ratios), max(self.ratios)
        ratio = f"{low:.2f} / **{middle:.2f}** / {high:.2f}"
        return f"| {self.name} | {self.ours:.2f} | {self.theirs:.2f} | {ratio} | {self.gigabytes:.1f} |"


def weights(kind: str, rng: np.random.Generator) -> np.ndarray:
    _, size = WEIGHTS[kind]
    if kind == "F16":
        return (rng.standard_normal((ROWS, K)) * 0.05).astype(np.float16).view(np.uint8).reshape(ROWS, -1)
    blocks = rng.integers(0, 256, (ROWS, K // size, 18), dtype=np.uint8)
    blocks[:, :, :2] = np.full((ROWS, K // size, 1), 0.02, np.float16).view(np.uint8)
    return blocks.reshape(ROWS, -1)


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(kind: str, columns: int, rounds: int) -> Figure:
    rng = np.random.default_rng(3)
    number, size = WEIGHTS[kind]
    w, x = weights(kind, rng), rng.standard_normal((columns, K)).astype(np.float32)
    projection = _native.Projection(_native.Pool(1), K, [(number, w.reshape(-1), ROWS)])
    y = np.zeros((columns, ROWS), np.float32)
    ggml = Ggml(threads=1, memory=512 << 20)
    theirs, result = ggml.prepared_mul_mat(number, w, ROWS, K, x)
    projection.apply(x, y)
    theirs()
    assert np.array_equal(result().view(np.uint32), y.view(np.uint32)), "the bits differ: no figure is worth it"
    products = ROWS * K // size * columns
    pairs = [(timed(lambda: projection.apply(x, y)), timed(theirs)) for _ in range(rounds)]
    ggml.close()
    ours, reference = (statistics.median(side) / products * 1e9 for side in zip(*pairs, strict=True))
    ratios = tuple(b / a for a, b in pairs)
    name = f"{kind}, {columns} column" + ("s" if columns > 1 else "")
    return Figure(name, ours, reference, ratios, w.nbytes / products / ours)


def memory_floor(rounds: int) -> float:
    """Gigabytes a second one thread reads: the sum of a large array, by numpy."""
    array = np.ones(64 << 20, np.uint64)
    return max(array.nbytes / timed(array.max) / 1e9 for _ in range(rounds))


def table(rounds: int) -> list[str]:
    lines = ["| product | ours, ns a block | reference, ns | ratio min / median / max | GB/s read |"]
    lines.append("|---|---|---|---|---|")
    for kind, columns in (("F16", 1), ("Q1_0", 1), ("Q1_0", 32), ("Q2_0", 1), ("Q2_0", 16)):
        lines.append(measure(kind, columns, rounds).row())
    floor = f"One thread reads memory at {memory_floor(rounds):.1f} GB/s in the same run."
    return [*lines, "", f"{floor} Instruction set: {_native.kernel_set()}."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    print("\n".join(table(parser.parse_args().rounds)))


if __name__ == "__main__":
    main()
