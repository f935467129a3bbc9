"""Derived models: created from a pinned model or another derived one, copied, deleted. Each is one manifest."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

from bankml.errors import FileMissing, NotFound, RequestError, named
from bankml.files import problem
from bankml.gate.guard import guard, require_model
from bankml.library.layer import stacked
from bankml.library.manifest import Manifest, digest_of, layer_content, manifest_path, require_plain, write_manifest
from bankml.library.modelfile import Modelfile
from bankml.library.names import LATEST, checked_name, derived_name, quoted
from bankml.library.reference import Derived, ModelLayer, PinnedFile, Reference
from bankml.library.registry import Registry
from bankml.library.supported import require_supported, template_source


def create(registry: Registry, name: str, modelfile: Modelfile) -> Derived:
    """Creates the derived model `name` from the model that FROM names, replacing an existing one of that name.

    The base's file must exist, because its header is read: it must be a supported model, and a TEMPLATE must equal its
    own. Raises RequestError for an invalid name, Modelfile or TEMPLATE, NotFound for an unknown base, Refused for a
    base or layer that fails its checks, FileProblem.
    """
    target = _target(registry, name)
    if not modelfile.source:
        raise RequestError("from is missing: it names the base model")
    base = registry.resolve(modelfile.source)
    template = base_template(base.source)
    if modelfile.template is not None and modelfile.template != template:
        raise RequestError(
            f"the TEMPLATE is not the one in {base.source.file}: only the model's own chat template is supported"
        )
    below = base.layer or ModelLayer(
        template_sha256=sha256(template.encode("utf-8")).hexdigest(), base_sha256=base.source.sha256
    )
    return _write(target, base.source, stacked(below, modelfile))


def copy(registry: Registry, source: str, destination: str) -> Derived:
    """Creates `destination` as a copy of the model `source` with its layer, replacing a derived model of that name.

    The copy of a pinned file is a derived model with an empty layer. Raises as `create`.
    """
    target = _target(registry, destination)
    found: Reference = registry.resolve(source)
    if found.layer is None:
        return create(registry, destination, Modelfile(found.name))
    return _write(target, found.source, found.layer)


def delete(registry: Registry, name: str) -> None:
    """Deletes the derived model `name`, even one with a damaged manifest. A symbolic link is unlinked, not followed.

    Raises NotFound, FileProblem, Refused if a directory or special file has the manifest's name, and RequestError for
    a pinned file: files of weights are not deleted.
    """
    requested = checked_name(name)
    if registry.is_pin(requested):
        raise RequestError(
            f"{quoted(name)} is a pinned file, and bankML deletes no weights: remove its record from FORK.json instead"
        )
    path = None if registry.folder is None else manifest_path(registry.folder, derived_name(name))
    if path is None or not os.path.lexists(path):
        raise NotFound(f"there is no model {quoted(name)} to delete")
    if not os.path.islink(path):
        require_plain(path)
    try:
        os.unlink(path)
    except FileNotFoundError:
        raise NotFound(f"there is no model {quoted(name)} to delete") from None
    except OSError as error:
        raise problem("delete", path, error) from error


def base_template(source: PinnedFile) -> str:
    """The chat template in the header of a pinned file. Raises Refused if the file is missing or unsupported."""
    if source.path is None:
        raise FileMissing(f"{source.file} is pinned, but the file is missing: refused")
    header = require_model(guard(source.path))
    with named(source.file):
        require_supported(header)
        return template_source(header)


def check_free(registry: Registry, name: str) -> str:
    """The name of a new derived model, as its manifest stores it. Raises RequestError for an invalid name, and for one
    of a pinned file: a derived model never hides a pin."""
    bare = derived_name(name)
    if registry.is_pin(bare) or registry.is_pin(bare + LATEST):
        raise RequestError(f"{quoted(name)} is the name of a pinned file: choose another name for a derived model")
    return bare


def _target(registry: Registry, name: str) -> Manifest:
    """The manifest to write, with its name and path."""
    if registry.folder is None:
        raise RequestError("this server has no registry: start it with --registry to create models")
    bare = check_free(registry, name)
    created_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Manifest(
        bare, created_at, PinnedFile("", "", "", "", None), ModelLayer(), "", manifest_path(registry.folder, bare)
    )


def _write(target: Manifest, base: PinnedFile, layer: ModelLayer) -> Derived:
    try:
        os.makedirs(os.path.dirname(target.path), exist_ok=True)
    except OSError as error:
        raise problem("write", os.path.dirname(target.path), error) from error
    manifest = replace(target, base=base, layer=layer, digest=digest_of(layer_content(layer)))
    write_manifest(manifest)
    return manifest.derived(base)
