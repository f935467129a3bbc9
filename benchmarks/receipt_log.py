"""How long appending to a receipt log and proving take, while the log grows.

    python -m benchmarks.receipt_log [--entries 10000000] [--dir DIR]

Prints for each tenth of the entries: entries a second, the median time of an inclusion proof, and of a consistency
proof. Then, with every entry on the disk before the next (`--log-sync always`): entries a second by 1 and by 8 threads.
"""

import argparse
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from bankml.transparency.checking import reader_of
from bankml.transparency.note import LogCheckpoint
from bankml.transparency.writer import LogSync, LogWriter

ENTRY_BYTES = 160
PROOFS = 25


def entry(index: int) -> bytes:
    return (b'{"index":%d,' % index).ljust(ENTRY_BYTES, b"x")


def grown(folder: Path, entries: int) -> list[tuple[int, float, float, float]]:
    """(size, entries a second, ms of an inclusion proof, ms of a consistency proof) at each tenth."""
    writer, rows = LogWriter(str(folder), None, LogSync.EVERY_SECOND), []
    old = LogCheckpoint.of(writer.checkpoint().decode())
    for tenth in range(1, 11):
        goal, began, before = entries * tenth // 10, time.perf_counter(), writer.size
        while writer.size < goal:
            writer.append(entry)
        rate = (goal - before) / (time.perf_counter() - began)
        new = LogCheckpoint.of(writer.checkpoint().decode())
        rows.append((goal, rate, proof_ms(folder, goal), consistency_ms(folder, old, new)))
        old = new
    writer.close()
    return rows


def proof_ms(folder: Path, size: int) -> float:
    """The median over entries anywhere in the log; nothing is kept from one proof to the next."""
    reader, times = reader_of(str(folder), None), []
    for _ in range(PROOFS):
        index = random.randrange(size)
        began = time.perf_counter()
        reader.prove(entry(index), index)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def consistency_ms(folder: Path, old: LogCheckpoint, new: LogCheckpoint) -> float:
    reader, times = reader_of(str(folder), None), []
    for _ in range(PROOFS):
        began = time.perf_counter()
        reader.require_consistent(old, new)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def synced_rate(folder: Path, threads: int, seconds: float = 2.0) -> float:
    """Entries a second, each on the disk before `append` returns."""
    writer, until = LogWriter(str(folder)), time.perf_counter() + seconds

    def append() -> None:
        while time.perf_counter() < until:
            writer.append(entry)

    running = [threading.Thread(target=append) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    size = writer.size
    writer.close()
    return size / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--dir", help="where the logs are made (default: the system's temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as made:
        print("   entries   appended/s   proof ms   consistency ms", flush=True)
        for size, rate, proof, consistency in grown(Path(made, "grown"), arguments.entries):
            print(f"{size:10,}   {rate:10,.0f}   {proof:8.2f}   {consistency:14.2f}")
        for threads in (1, 8):
            print(f"synced, {threads} threads: {synced_rate(Path(made, f'by{threads}'), threads):,.0f} entries/s")


if __name__ == "__main__":
    main()
