"""Progress of a batch on stderr: a bar on a terminal, else a line now and then."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bankml.cli.output import note

EVERY_S = 10.0
"""Seconds between two lines, where stderr is no terminal."""


@contextmanager
def batch_progress(done: int, total: int, quiet: bool) -> Iterator[Callable[[int], object]]:
    """A function of the lines that were written since its last call; `done` of `total` were there before."""
    if quiet:
        yield lambda written: None
    elif sys.stderr.isatty():
        from tqdm import tqdm

        columns, rows = os.get_terminal_size(sys.stderr.fileno())
        with tqdm(
            total=total, initial=done, desc="batch", unit="request", ncols=columns or 80, nrows=rows or 24
        ) as bar:
            yield bar.update
    else:
        yield PlainProgress(done, total)


class PlainProgress:
    """Prints `batch: 120 of 1000 requests, 14.2 a second, 62 s left`."""

    def __init__(self, done: int, total: int) -> None:
        self._first = self._done = done
        self._total = total
        self._began = self._said = time.monotonic()

    def __call__(self, written: int) -> None:
        self._done += written
        now = time.monotonic()
        if now - self._said >= EVERY_S:
            self._said = now
            rate = (self._done - self._first) / (now - self._began)
            left = f", {(self._total - self._done) / rate:.0f} s left" if rate else ""
            note(f"batch: {self._done} of {self._total} requests, {rate:.1f} a second{left}")
