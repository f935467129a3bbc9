"""The prompt cache's size limit, and returning freed memory to the system."""

import ctypes
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from bankml.errors import UsageError
from bankml.model.limits import MAX_MIB

MIB = 1 << 20
DEFAULT_MIB = 8192
VARIABLE = "BANKML_CACHE_RAM"

M_MMAP_THRESHOLD = -3
"""glibc's number of that parameter of `mallopt`."""
LARGE = 4 * MIB


def available_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes available without swapping, as the kernel estimates them; on other systems the machine's memory."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def configured_cache_limit(environment: Mapping[str, str] = os.environ) -> int | None:
    """The limit of the prompt cache in bytes, from the environment. Raises UsageError."""
    return cache_limit(environment.get(VARIABLE), available_memory())


def cache_limit(text: str | None, available: int) -> int | None:
    """The limit in bytes for `text`, the variable's value in MiB: 0 is no cache, None no limit.

    Unset or empty: DEFAULT_MIB, but at most a quarter of `available` bytes. Raises UsageError.
    """
    if not text:
        return min(DEFAULT_MIB * MIB, available // 4)
    if text == "-1":
        return None
    if not text.isascii() or not text.isdigit() or int(text[:20]) > MAX_MIB:
        raise UsageError(f"{VARIABLE} must be a whole number of MiB up to {MAX_MIB}, or -1 for no limit, not {text!r}")
    return int(text) * MIB


def give_back_memory() -> None:
    """Returns free memory of the C library's heaps to the system, such as that of reading a vocabulary, if possible."""
    trim = _c_library("malloc_trim")
    if trim is not None:
        trim(0)


def keep_heaps_small() -> None:
    """Keeps LARGE allocations out of the heaps from now on, so that freeing one returns it to the system.

    glibc raises its own threshold to the largest block that was ever freed, and alternating models then leave holes of
    their vocabularies in every thread's heap. For a process of our own only: it changes malloc for the entire process.
    """
    mallopt = _c_library("mallopt")
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)


@cache
def _c_library(name: str) -> Callable[..., object] | None:
    """A function that only glibc has, or None."""
    try:
        found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    return found
