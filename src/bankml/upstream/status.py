"""`GET /bankml` in front of llama-server: what was verified, when, and where the engine listens."""

import os

from bankml import __version__
from bankml.gate.verify import Verified
from bankml.http.json_out import utc_time

ENGINE = "llama.cpp"
"""The engine's name; receipts add its build."""


def status(verified: Verified, upstream: str) -> dict[str, object]:
    """`upstream` is llama-server's address, HOST:PORT. The only response with an absolute path in it."""
    return {
        "bankml": __version__,
        "engine": ENGINE,
        "model": os.path.splitext(verified.name)[0].lower(),
        "path": verified.path,
        "fork": verified.fork_path,
        "model_sha256": verified.sha256,
        "guard": verified.verdict.kind,
        "verified_at": utc_time(verified.verified_at),
        "unchanged": verified.unchanged,
        "upstream": upstream,
    }
