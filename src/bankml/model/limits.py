"""The limits of threads, of requests and of context sizes, and how a requested context is rounded."""

MAX_THREADS = 256
"""More would only contend with each other."""

DEFAULT_CONTEXT = 4096
MAX_CONTEXT = 1 << 24
"""More tokens than any model was trained on."""

MICRO_BATCH = 512
"""Tokens of one forward pass at most, llama-server's default --ubatch-size: bits depend on it."""

MAX_PARALLEL = 64
"""Sequences that are computed together at most."""

DEFAULT_QUEUE = 256
MAX_QUEUE = 1 << 16
"""Requests that wait for the model at most."""

MAX_MIB = 1 << 24
"""A limit of memory in MiB that no machine reaches."""

CONTEXT_STEP = 256
"""llama.cpp rounds a context up to whole steps of this many tokens."""


def context_size(wanted: int, trained: int) -> int:
    """The context that llama-server gives when asked for `wanted` tokens of a model trained on `trained`."""
    return min(context_cells(wanted), trained)


def context_cells(wanted: int) -> int:
    """The cells of the K/V cache that llama-server makes when asked for `wanted` tokens."""
    return -(-wanted // CONTEXT_STEP) * CONTEXT_STEP
