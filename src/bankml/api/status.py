"""`GET /bankml`: what was verified, when, and what answers with it. The one answer that gives an absolute path."""

from dataclasses import asdict

from bankml import __version__
from bankml.http.json_out import utc_time
from bankml.library.reference import Reference
from bankml.library.residency import Library
from bankml.model.config import computed_tensors

Json = dict[str, object]


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
        "verified_at": utc_time(last.verified_at),
        "unchanged": None if resident is None else resident.verified.unchanged,
        "upstream": library.engine_address,
        "n_ctx": last.n_ctx,
        "resident": None
        if resident is None
        else {
            "name": resident.name,
            "expires_at": None if expires_at is None else utc_time(expires_at),
            "tensors": computed_tensors(resident.verified.header)[0],
        },
        "refused": None if refused is None else {**asdict(refused), "time": utc_time(refused.time)},
        **library.issuer.describe(),
        "models": [_model(library, reference) for reference in library.references()],
    }


def _model(library: Library, reference: Reference) -> Json:
    """A name and what it stands for; `base` is there where it is another's, under a layer."""
    source = reference.source
    base = {} if reference.layer is None else {"base": source.name}
    file = {"file": source.file, "sha256": source.sha256, "found": bool(source.path)}
    return {"name": reference.name, **base, **file, "reason": library.facts(source).reason}
