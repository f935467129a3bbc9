"""`GET /bankml`: what was verified, when, and what answers with it. The one answer that gives an absolute path."""

from datetime import UTC, datetime

from bankml import __version__
from bankml.library.resident import Library

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


def _utc(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
