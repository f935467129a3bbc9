"""`NAME.MODEL.json`: a derived model on disk, with digests that reveal edits.

    {"kind": "bankml.derived.v1", "bankml": VERSION that wrote it, "name", "created_at",
     "base": {"name", "file", "sha256", "fork", "path"}, "layer": {…}, "digest": HEX64, "manifest_sha256": HEX64}

The digest is the sha256 of the layer's content: the object at `layer` as UTF-8 JSON with sorted keys, no spaces
between tokens, and only mandatory escapes. Models with equal content have equal digests.
`manifest_sha256` is the same of the complete object without that key, so that any edit is noticed. The layer has its
base's sha256, and both must be equal.

A manifest is a regular file of its folder: a symbolic link is neither read nor written.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import bankml
from bankml.errors import FileProblem, Refused, RequestError
from bankml.files import atomic_write, problem
from bankml.gate.fork import HEX64
from bankml.library import parameters
from bankml.library.json_file import read_object
from bankml.library.names import derived_name, quoted
from bankml.library.reference import Derived, ModelLayer, PinnedFile

KIND = "bankml.derived.v1"
SUFFIX = ".MODEL.json"
MOST_BYTES = 32 << 20
ROLES = ("system", "user", "assistant")
CREATED_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")

_KEYS = {"kind", "bankml", "name", "created_at", "base", "layer", "digest", "manifest_sha256"}
_BASE_KEYS = {"name", "file", "sha256", "fork", "path"}
_LAYER_KEYS = {
    "system", "parameters", "stop", "messages", "license", "template_sha256", "base_sha256", "requires"
}  # fmt: skip


@dataclass(frozen=True)
class Manifest:
    """A manifest's content. `base` is the base when the model was made; `path` is the manifest's own path."""

    name: str
    created_at: str
    base: PinnedFile
    layer: ModelLayer
    digest: str
    path: str

    def derived(self, base: PinnedFile) -> Derived:
        """The model, over its base as it is pinned now."""
        return Derived(self.name, self.created_at, base, self.layer, self.digest, self.path)


def manifest_path(folder: str, name: str) -> str:
    """The manifest's path of the derived model `name` (as `derived_name` gives it) in a registry."""
    return os.path.join(folder, name + SUFFIX)


def layer_content(layer: ModelLayer) -> dict[str, Any]:
    """The layer as the manifest's `layer` object."""
    return {
        "system": layer.system,
        "parameters": dict(layer.parameters),
        "stop": list(layer.stop),
        "messages": [dict(message) for message in layer.messages],
        "license": list(layer.license),
        "template_sha256": layer.template_sha256,
        "base_sha256": layer.base_sha256,
        "requires": layer.requires,
    }


def digest_of(content: Mapping[str, Any]) -> str:
    """The sha256 of a layer's content, or of a manifest without that key, 64 hex digits."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode("utf-8")).hexdigest()


def require_plain(path: str | os.PathLike[str]) -> None:
    """Raises Refused if `path` exists and is not a regular file (a symbolic link, for example)."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise problem("write", path, error) from error
    if not stat.S_ISREG(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise Refused(f"{os.path.basename(path)} is {what}: refused")


def write_manifest(manifest: Manifest) -> None:
    """Writes the manifest to its path, atomically. Raises FileProblem, and Refused if that is not a regular file."""
    require_plain(manifest.path)
    base = manifest.base
    document: dict[str, Any] = {
        "kind": KIND,
        "bankml": bankml.__version__,
        "name": manifest.name,
        "created_at": manifest.created_at,
        "base": {
            "name": base.name,
            "file": base.file,
            "sha256": base.sha256,
            "fork": _noted(base.fork),
            "path": None if base.path is None else _noted(base.path),
        },
        "layer": layer_content(manifest.layer),
        "digest": manifest.digest,
    }
    document["manifest_sha256"] = digest_of(document)
    with atomic_write(manifest.path, follow=False) as out:
        out.write((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8"))


def _noted(path: str) -> str:
    """A path as JSON can store it: U+FFFD for bytes that are not UTF-8. It is informative and is never opened."""
    return os.fsencode(path).decode("utf-8", "replace")


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """The manifest at `path`. Raises Refused, saying why, for one that was edited, is of another kind or has another
    name than its file; FileProblem if it cannot be read."""
    file = os.path.basename(path)
    try:
        document = read_object(path, MOST_BYTES, follow=False)
    except FileProblem as error:
        if not os.path.lexists(path):
            raise
        raise Refused(f"{file} is not a manifest: {error.public_message}") from error
    try:
        return _manifest(document, file, os.fspath(path))
    except (_Malformed, RequestError) as error:
        raise Refused(f"{file} is not a manifest written by create: {error}") from error
    except RecursionError as error:
        raise Refused(f"{file} is not a manifest written by create: its layer is nested too deeply") from error


class _Malformed(Exception):
    pass


def _manifest(document: Mapping[str, Any], file: str, path: str) -> Manifest:
    kind = document.get("kind")
    if kind != KIND:
        raise _Malformed(f"its kind is {str(kind)[:80]!r}, but this version reads {KIND!r}")
    _only(document, _KEYS, "the manifest")
    _text(document, "bankml")
    name = _text(document, "name")
    if derived_name(name) != name or file != name + SUFFIX:
        raise _Malformed(f"it names the model {quoted(name)}")
    created_at = _text(document, "created_at")
    if not CREATED_AT.fullmatch(created_at):
        raise _Malformed(f"its created_at is {quoted(created_at)}")
    digest = _text(document, "digest")
    if not isinstance(document["layer"], dict):
        raise _Malformed("its layer is not an object")
    found = digest_of(document["layer"])
    if found != digest:
        raise _Malformed(f"its layer has the digest {found}, not the recorded {quoted(digest)[1:-1]}: edited by hand")
    manifest_sha256 = digest_of({key: value for key, value in document.items() if key != "manifest_sha256"})
    if manifest_sha256 != document["manifest_sha256"]:
        raise _Malformed("its manifest_sha256 does not match its content: edited by hand")
    layer = _layer(document["layer"])
    base = _base(document["base"])
    if base.sha256 != layer.base_sha256:
        raise _Malformed("its base and its layer have different sha256 values: edited by hand")
    return Manifest(name, created_at, base, layer, digest, path)


def _base(value: object) -> PinnedFile:
    if not isinstance(value, dict):
        raise _Malformed("its base is not an object")
    _only(value, _BASE_KEYS, "its base")
    path = value["path"]
    if path is not None and not isinstance(path, str):
        raise _Malformed("path is not a string")
    return PinnedFile(_text(value, "name"), _text(value, "file"), _hex64(value, "sha256"), _text(value, "fork"), path)


def _layer(value: Mapping[str, Any]) -> ModelLayer:
    _only(value, _LAYER_KEYS, "its layer")
    given = value["parameters"]
    if not isinstance(given, dict):
        raise _Malformed("parameters is not an object")
    return ModelLayer(
        system=_optional_text(value, "system"),
        parameters={name: parameters.checked(name, one) for name, one in given.items()},
        stop=parameters.checked_stops(_list(value, "stop")),
        messages=tuple(_message(one) for one in _list(value, "messages")),
        license=tuple(_string(one, "license") for one in _list(value, "license")),
        template_sha256=_hex64(value, "template_sha256"),
        base_sha256=_hex64(value, "base_sha256"),
        requires=_optional_text(value, "requires"),
    )


def _message(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Malformed("one of messages is not an object")
    _only(value, {"role", "content"}, "one of messages")
    if value["role"] not in ROLES:
        raise _Malformed("the role of a message is not system, user or assistant")
    return {"role": value["role"], "content": _string(value["content"], "content")}


def _only(value: Mapping[str, Any], keys: set[str], where: str) -> None:
    odd = sorted(keys.symmetric_difference(value))
    if odd:
        raise _Malformed(f"{where} {'lacks' if odd[0] in keys else 'has an unknown key'} {quoted(odd[0])}")


def _string(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise _Malformed(f"{name} is not a string")
    return value


def _text(value: Mapping[str, Any], name: str) -> str:
    return _string(value.get(name), name)


def _optional_text(value: Mapping[str, Any], name: str) -> str | None:
    return None if value[name] is None else _string(value[name], name)


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value[name]
    if not isinstance(found, list):
        raise _Malformed(f"{name} is not a list")
    return found


def _hex64(value: Mapping[str, Any], name: str) -> str:
    found = _text(value, name)
    if not HEX64.fullmatch(found) or found != found.lower():
        raise _Malformed(f"{name} is not 64 hex digits")
    return found
