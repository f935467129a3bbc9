"""How much memory the prompt cache may take, and giving back what is of no use any more."""

import ctypes
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from bankml.errors import UsageError

MIB = 1 << 20
DEFAULT_MIB = 8192
MOST_MIB = 1 << 24
VARIABLE = "BANKML_CACHE_RAM"

M_MMAP_THRESHOLD = -3
"""glibc's number for that parameter of `mallopt`."""
LARGE = 4 * MIB


def available_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes that programs can take without swapping, as the kernel estimates them; elsewhere the machine's memory."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def configured_cache_limit(environment: Mapping[str, str] = os.environ) -> int | None:
    """The limit of the prompt cache in bytes that the environment asks for now. Raises UsageError."""
    return cache_limit(environment.get(VARIABLE), available_memory())


def cache_limit(text: str | None, available: int) -> int | None:
    """The limit in bytes that `text`, the variable's value in MiB, asks for: 0 is no cache, None no limit.

    Unset or empty: DEFAULT_MIB, but at most a quarter of `available` bytes. Raises UsageError.
    """
    if not text:
        return min(DEFAULT_MIB * MIB, available // 4)
    if text == "-1":
        return None
    if not text.isascii() or not text.isdigit() or int(text[:20]) > MOST_MIB:
        raise UsageError(f"{VARIABLE} must be a whole number of MiB up to {MOST_MIB}, or -1 for no limit, not {text!r}")
    return int(text) * MIB


def give_back_memory() -> None:
    """Returns what is free inside the C library's heaps, such as what reading a vocabulary took, where it can."""
    trim = _c_library("malloc_trim")
    if trim is not None:
        trim(0)


def keep_heaps_small() -> None:
    """From now on what is LARGE is never part of a heap, so that it goes back whole when it is freed.

    glibc raises its own threshold to the largest block that was ever freed, and models that take turns then leave their
    vocabularies' holes in the heap of every thread. For a process of our own: it changes what malloc does for all.
    """
    mallopt = _c_library("mallopt")
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)


@cache
def _c_library(name: str) -> Callable[..., object] | None:
    """A function that glibc has and other C libraries may not."""
    try:
        found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    return found
