"""The native products beside the reference library's own, through ctypes: same bytes, same process, alternating.

    python -m benchmarks.kernels [--rounds 7] [--types Q4_K,Q8_0] [--rows 4096]

One thread each; one row of activations, and the 512 of a micro-batch. Prints nanoseconds a row of weights and of
activations, the ratio, and the rate at which weights are read. Needs `make oracle`.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bankml import _native
from tests.ggml import Backend
from tests.model.weight_blocks import FORMATS, arranged, random_rows, random_weights

COLUMNS = 2048


@dataclass(frozen=True)
class Figure:
    """One measured product: median nanoseconds a row of each side, and ratios (theirs / ours) round by round."""

    name: str
    ours: float
    theirs: float
    ratios: tuple[float, ...]
    gigabytes: float

    def row(self) -> str:
        low, middle, high = min(self.ratios), statistics.median(self.ratios), max(self.ratios)
        ratio = f"{low:.2f} / **{middle:.2f}** / {high:.2f}"
        return f"| {self.name} | {self.ours:.1f} | {self.theirs:.1f} | {ratio} | {self.gigabytes:.1f} |"


def timed(run: Callable[[], object]) -> float:
    """Seconds of processor time, which other programs on the machine take none of."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def measure(backend: Backend, name: str, n: int, rows: int, rounds: int) -> Figure:
    weights, x = random_weights(3, name, rows, COLUMNS), random_rows(4, n, COLUMNS)
    part = (FORMATS[name].id, arranged(FORMATS[name].id, weights, COLUMNS), rows)
    projection = _native.Projection(_native.Pool(1), COLUMNS, [part])
    y = np.zeros((n, rows), np.float32)
    with backend.prepared_mul_mat(FORMATS[name].id, weights, x) as (theirs, result):
        projection.apply(x, y)
        theirs()
        assert np.array_equal(result().view(np.uint32), y.view(np.uint32)), "the bits differ: no figure is worth it"
        pairs = [(timed(lambda: projection.apply(x, y)), timed(theirs)) for _ in range(rounds)]
    ours, reference = (statistics.median(side) / (rows * n) * 1e9 for side in zip(*pairs, strict=True))
    return Figure(f"{name}, {n}", ours, reference, tuple(b / a for a, b in pairs), weights.nbytes / rows / n / ours)


def memory_floor(rounds: int) -> float:
    """Gigabytes a second one thread reads: the largest of a large array, by numpy."""
    array = np.ones(64 << 20, np.uint64)
    return max(array.nbytes / timed(array.max) / 1e9 for _ in range(rounds))


def table(names: list[str], rows: int, rounds: int) -> list[str]:
    backend = Backend(threads=1)
    lines = ["| type, rows of activations | ours, ns | reference, ns | ratio min / median / max | GB/s read |"]
    lines.append("|---|---|---|---|---|")
    lines += [measure(backend, name, n, rows, rounds).row() for name in names for n in (1, 512)]
    floor = f"One thread reads memory at {memory_floor(rounds):.1f} GB/s in the same run."
    return [*lines, "", f"{floor} Instruction set: {_native.kernel_set()}."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--types", type=lambda text: text.split(","), default=list(FORMATS))
    given = parser.parse_args()
    print("\n".join(table(given.types, given.rows, given.rounds)))


if __name__ == "__main__":
    main()
