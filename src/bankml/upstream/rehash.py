"""Hashes the file that llama-server serves again: after it has loaded it, on a schedule, and on demand.

The identity of a file shows most changes at once, but not a store through a shared mapping (see gate.contents). A hash
shows it, and bankML cannot hash what llama-server has in memory. Once a hash was another one, no further answer gets a
receipt: the weights in llama-server's memory may be the changed ones even if the file is changed back.
"""

import threading
import time
from collections.abc import Callable

from bankml.errors import ModelChanged
from bankml.gate.verify import Verified
from bankml.threads import start_thread


class FileRehash:
    """`verified_at` is when the file last had the verified sha256, in seconds since the epoch. `failed` is called once,
    in the thread that found it, with the sentence about a file that has another sha256. Safe for several threads."""

    def __init__(self, verified: Verified, failed: Callable[[str], object] = lambda message: None) -> None:
        self._verified = verified
        self._failed = failed
        self._lock = threading.Lock()
        self._change: str | None = None
        self.verified_at = verified.verified_at

    def check(self) -> None:
        """Raises ModelChanged once a hash of the file was another one. Reads nothing."""
        if self._change is not None:
            raise ModelChanged(self._change)

    def run(self) -> None:
        """Hashes the file now. Raises ModelChanged."""
        requested = time.time()
        with self._lock:
            self.check()
            if self.verified_at >= requested:  # another thread hashed meanwhile
                return
            began = time.time()
            try:
                self._verified.rehash()
            except ModelChanged as error:
                self._change = error.message
                self._failed(error.message)
                raise
            self.verified_at = began

    def start(self, interval: float) -> None:
        """From now on a thread of its own hashes the file: at once, then every `interval` seconds."""

        def repeat() -> None:
            try:
                while True:
                    self.run()
                    time.sleep(interval)
            except ModelChanged:
                return

        start_thread(repeat, "rehash")
