"""`GET /bankml`: what was verified, when, and what answers with it. The one answer that gives an absolute path."""

import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bankml import __version__
from bankml.errors import ModelChanged
from bankml.library.reference import Reference
from bankml.library.residency import Library

if TYPE_CHECKING:
    from bankml.gate.verify import Verified

Json = dict[str, object]

BEHIND = "llama.cpp"
"""The engine of a gateway in front of llama-server; receipts also say which build it is."""


def bankml(library: Library) -> Json:
    """The model that is resident, or was last; `resident` says which of the two, and `models` what else has a name.

    `refused` is what was asked for last and could not be verified or is not played, and of the `models` `reason` is why
    one is not, as far as its header tells. `unchanged` is whether the resident model's file is still the one that was
    verified, looked at now; None where none is, for the next one is verified when it is loaded.
    """
    last, resident, expires_at, refused = library.last, library.resident, library.expires_at, library.refused
    return {
        "bankml": __version__,
        "engine": last.provenance.engine,
        "model": last.source.name,
        "path": last.path,
        "fork": last.fork,
        "model_sha256": last.provenance.model_sha256,
        "guard": last.provenance.guard,
        "verified_at": _utc(last.verified_at),
        "unchanged": None if resident is None else _unchanged(resident.check_unchanged),
        "n_ctx": last.n_ctx,
        "resident": None
        if resident is None
        else {"name": resident.name, "expires_at": None if expires_at is None else _utc(expires_at)},
        "refused": None if refused is None else {**asdict(refused), "time": _utc(refused.time)},
        "models": [_model(library, reference) for reference in library.references()],
    }


def _unchanged(check: Callable[[], None]) -> bool:
    try:
        check()
    except ModelChanged:
        return False
    return True


def _model(library: Library, reference: Reference) -> Json:
    """A name and what it stands for; `base` is there where it is another's, under a layer."""
    source = reference.source
    base = {} if reference.layer is None else {"base": source.name}
    file = {"file": source.file, "sha256": source.sha256, "found": bool(source.path)}
    return {"name": reference.name, **base, **file, "reason": library.facts(source).reason}


def in_front_of(verified: "Verified", upstream: str) -> Json:
    """The same in front of llama-server, which answers at `upstream` (HOST:PORT)."""
    return {
        "bankml": __version__,
        "engine": BEHIND,
        "model": os.path.splitext(verified.name)[0].lower(),
        "path": verified.path,
        "fork": verified.fork_path,
        "model_sha256": verified.sha256,
        "guard": verified.verdict.kind,
        "verified_at": _utc(verified.verified_at),
        "unchanged": _unchanged(verified.check_unchanged),
        "upstream": upstream,
    }


def _utc(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
