"""Anonymous memory mappings: memory that returns to the system as soon as its last user is gone.

malloc keeps what a thread has freed for that thread's next allocations, so a model that one thread drops and another
reads again would leave its memory behind.
"""

import mmap


def private_pages(nbytes: int, *, large: bool = True) -> mmap.mmap:
    """A private mapping of `nbytes` zero bytes (at least 1). Pages that are never written take no memory; they are
    `large` ones (2 MiB) where the kernel has them, or small ones, of what is filled here and there.

    Raises MemoryError where the system has no such range.
    """
    try:
        memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(f"cannot allocate {nbytes} bytes of memory") from error
    if large and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
