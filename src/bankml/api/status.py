"""`GET /bankml`: what was verified, when, and what answers with it. The one answer that gives an absolute path."""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bankml import __version__
from bankml.library.resident import Library

if TYPE_CHECKING:
    from bankml.gate.verify import Verified

Json = dict[str, object]


def bankml(library: Library) -> Json:
    resident = library.startup
    return {
        "bankml": __version__,
        "engine": resident.provenance.engine,
        "model": resident.name,
        "path": str(resident.path),
        "fork": resident.verified.fork_path,
        "model_sha256": resident.provenance.model_sha256,
        "guard": resident.provenance.guard,
        "verified_at": _utc(resident.verified.verified_at),
        "n_ctx": resident.n_ctx,
    }


def in_front_of(verified: "Verified", upstream: str) -> Json:
    """The same in front of llama-server, which answers at `upstream` (HOST:PORT)."""
    return {
        "bankml": __version__,
        "engine": "llama.cpp",
        "model": os.path.splitext(verified.name)[0].lower(),
        "path": verified.path,
        "fork": verified.fork_path,
        "model_sha256": verified.sha256,
        "guard": verified.verdict.kind,
        "verified_at": _utc(verified.verified_at),
        "upstream": upstream,
    }


def _utc(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
