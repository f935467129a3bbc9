"""The native products against the reference library's own symbols: same bytes, same process, one thread, alternating.

    python -m benchmarks.kernels [--rounds 9]

Prints nanoseconds a block and the ratio, and what share of the memory's reading rate that is. Needs `make oracle`.
"""

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bankml import _native
from tests import oracle

ROWS, K = 16384, 2048
WEIGHTS = {"Q1_0": (41, 128), "Q2_0": (42, 64), "F16": (1, 32)}
SYMBOLS = {"Q1_0": "ggml_vec_dot_q1_0_q8_0", "Q2_0": "ggml_vec_dot_q2_0_q8_0", "F16": "ggml_vec_dot_f16"}


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


def reference(kind: str, w: np.ndarray, x: np.ndarray) -> Callable[[], np.ndarray]:
    """Every row's dot product by the library's function, called from a loop in C of ctypes' making."""
    cpu = ctypes.CDLL(str(oracle.BIN / "libggml-cpu.so"))
    cpu.ggml_cpu_init()
    dot = getattr(cpu, SYMBOLS[kind])
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    dot.argtypes = [ctypes.c_int, pointer, size, pointer, size, pointer, size, ctypes.c_int]
    if kind == "F16":
        prepared = x.astype(np.float16).view(np.uint8)
    else:
        prepared = np.zeros(K // 32 * 34, np.uint8)
        cpu.quantize_row_q8_0.argtypes = [pointer, pointer, ctypes.c_int64]
        cpu.quantize_row_q8_0(x.ctypes.data, prepared.ctypes.data, K)
    out = np.zeros(ROWS, np.float32)

    def run() -> np.ndarray:
        address, step, base, column = w.ctypes.data, w.strides[0], out.ctypes.data, prepared.ctypes.data
        for r in range(ROWS):
            dot(K, base + 4 * r, 0, address + r * step, 0, column, 0, 1)
        return out

    return run


def call_cost() -> float:
    """Seconds of one call through ctypes with a function that does nothing: k = 0."""
    cpu = ctypes.CDLL(str(oracle.BIN / "libggml-cpu.so"))
    dot = cpu.ggml_vec_dot_q2_0_q8_0
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    dot.argtypes = [ctypes.c_int, pointer, size, pointer, size, pointer, size, ctypes.c_int]
    out = np.zeros(1, np.float32)
    start = time.perf_counter()
    for _ in range(ROWS):
        dot(0, out.ctypes.data, 0, out.ctypes.data, 0, out.ctypes.data, 0, 1)
    return (time.perf_counter() - start) / ROWS


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(kind: str, columns: int, rounds: int) -> Figure:
    rng = np.random.default_rng(3)
    number, size = WEIGHTS[kind]
    w, x = weights(kind, rng), rng.standard_normal((columns, K)).astype(np.float32)
    projection = _native.Projection(_native.Pool(1), number, K, [(w.reshape(-1), ROWS)])
    y = np.zeros((columns, ROWS), np.float32)
    theirs = reference(kind, w, x[0])
    projection.apply(x, y)
    if columns == 1:
        assert np.array_equal(theirs().view(np.uint32), y[0].view(np.uint32)), (
            "the bits differ: no figure is worth printing"
        )
    blocks = ROWS * K // size
    ours_ns, theirs_ns = [], []
    for _ in range(rounds):
        ours_ns.append(timed(lambda: projection.apply(x, y)) / blocks / columns * 1e9)
        theirs_ns.append((timed(theirs) - ROWS * call_cost()) / blocks * 1e9)
    ratios = tuple(t / o for o, t in zip(ours_ns, theirs_ns, strict=True))
    ours = statistics.median(ours_ns)
    name = f"{kind}, {columns} column" + ("s" if columns > 1 else "")
    return Figure(name, ours, statistics.median(theirs_ns), ratios, w.nbytes / blocks / ours / columns)


def memory_floor(rounds: int) -> float:
    """Gigabytes a second one thread reads: the sum of a large array, by numpy."""
    array = np.ones(64 << 20, np.uint64)
    return max(array.nbytes / timed(array.max) / 1e9 for _ in range(rounds))


def table(rounds: int) -> list[str]:
    lines = ["| product | ours, ns a block | reference, ns | ratio min / median / max | GB/s read |"]
    lines.append("|---|---|---|---|---|")
    for kind, columns in (("F16", 1), ("Q1_0", 1), ("Q1_0", 64), ("Q2_0", 1), ("Q2_0", 64)):
        lines.append(measure(kind, columns, rounds).row())
    floor = f"One thread reads memory at {memory_floor(rounds):.1f} GB/s in the same run."
    return [*lines, "", f"{floor} Instruction set: {_native.kernel_set()}."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    print("\n".join(table(parser.parse_args().rounds)))


if __name__ == "__main__":
    main()
