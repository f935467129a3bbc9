"""`GET /bankml`: what was verified, when, and what answers with it. The one answer that gives an absolute path."""

from bankml import __version__
from bankml.library.resident import Library

Json = dict[str, object]


def bankml(library: Library) -> Json:
    resident = library.startup
    return {
        "bankml": __version__,
        "engine": resident.provenance.engine,
        "model": resident.name,
        "path": str(resident.path.absolute()),
        "model_sha256": resident.provenance.model_sha256,
        "guard": resident.provenance.guard,
        "verified_at": resident.verified.verified_at,
        "n_ctx": resident.model.n_ctx,
    }
