"""`GET /bankml` in front of llama-server: what was verified and when, where the engine listens, what is proven."""

import os
from typing import Literal

from bankml import __version__
from bankml.gate.verify import Verified
from bankml.http.json_out import utc_time

ENGINE = "llama.cpp"
"""The engine's name; receipts add its build and `PROOFS`."""

Loading = Literal["memory", "mmap", "unknown"]
"""How llama-server has the model's file: read into its memory, mapped, or unknown where it was started by others."""

PROOFS: dict[Loading, str] = {
    "memory": "proven: the file; not: its memory, its arithmetic",
    "mmap": "proven: the file when hashed; not: later stores to the file it maps, its arithmetic",
    "unknown": "proven: the file; not: how it was loaded, its memory, its arithmetic",
}
"""What a receipt says is proven in front of llama-server (docs/receipts.md)."""


def engine_name(build: object, loading: Loading) -> str:
    """The `engine` of receipts. `build` is what /props says of it."""
    name = f"{ENGINE} {build}" if isinstance(build, str) and build else ENGINE
    return f"{name} ({PROOFS[loading]})"


def model_name(verified: Verified) -> str:
    """The model's name: its file's, without the suffix and in lower case."""
    return os.path.splitext(verified.name)[0].lower()


def status(verified: Verified, upstream: str, loading: Loading, rehashed_at: float) -> dict[str, object]:
    """`upstream` is llama-server's address, HOST:PORT; `rehashed_at` (seconds since the epoch) when the file last had
    the verified sha256. The only response with an absolute path in it."""
    return {
        "bankml": __version__,
        "engine": ENGINE,
        "model": model_name(verified),
        "path": verified.path,
        "fork": verified.fork_path,
        "model_sha256": verified.sha256,
        "guard": verified.verdict.kind,
        "verified_at": utc_time(verified.verified_at),
        "rehashed_at": utc_time(rehashed_at),
        "unchanged": verified.unchanged,
        "upstream": upstream,
        "loading": loading,
        "proof": PROOFS[loading],
    }
