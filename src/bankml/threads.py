"""Starting a thread: no thread of this project handles the process's signals."""

import signal
import threading
from collections.abc import Callable


def start_thread(target: Callable[..., object], name: str, *arguments: object) -> threading.Thread:
    """Starts a daemon thread in which every signal is blocked: a C program that embeds this library handles its signals
    on its own threads. Raises RuntimeError (errors.NO_THREAD) where the system starts no further thread."""
    thread = threading.Thread(target=target, name=name, args=arguments, daemon=True)
    # a new thread inherits the mask of the one that starts it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread
