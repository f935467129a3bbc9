"""What a model's name refers to: small frozen records that load nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


@dataclass(frozen=True)
class PinnedFile:
    """A GGUF with a record: a model that can be loaded.

    `name` is its file's stem in lower case; `file` its file's name and `sha256` (64 lower-case hex digits) as recorded;
    `fork` the path of the FORK.json with the record; `path` the file's current path, None if it is missing, which does
    not affect equality.
    """

    name: str
    file: str
    sha256: str
    fork: str
    path: str | None = field(compare=False)

    @classmethod
    def of(cls, verified: Verified) -> PinnedFile:
        """The pinned file that was verified."""
        stem = os.path.splitext(verified.name)[0].lower()
        return cls(stem, verified.name, verified.sha256, verified.fork_path, verified.path)


@dataclass(frozen=True)
class ModelLayer:
    """What a derived model adds to its base; every value is JSON.

    `parameters` have Ollama's names (`num_ctx`, `temperature`; the supported options, without `stop`), each an int or a
    float. `messages` have `role` (system, user, assistant) and `content`. `license` has the texts of its LICENSE lines.
    `template_sha256` is the hash of the base's chat template (UTF-8), `base_sha256` the base's pin when the layer was
    made; `requires` is the value of REQUIRES.
    """

    system: str | None = None
    parameters: Mapping[str, int | float] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    messages: tuple[Mapping[str, str], ...] = ()
    license: tuple[str, ...] = ()
    template_sha256: str = ""
    base_sha256: str = ""
    requires: str | None = None

    @property
    def num_ctx(self) -> int | None:
        value = self.parameters.get("num_ctx")
        return None if value is None else int(value)


@dataclass(frozen=True)
class Derived:
    """A derived model as in its manifest, `<registry>/<name>.MODEL.json`.

    `created_at` is an RFC 3339 time in UTC, `digest` the sha256 (64 hex digits) of the layer's content, `path` that of
    the manifest. `base` is the file that its base is pinned to now, which equals the one it was made of.
    """

    name: str
    created_at: str
    base: PinnedFile
    layer: ModelLayer
    digest: str
    path: str


@dataclass(frozen=True)
class Reference:
    """What a name refers to: a file and, for a derived model, its layer.

    `name` is the model's own name, whatever alias was requested; `derived` is the manifest's record behind `layer`.
    """

    name: str
    source: PinnedFile
    layer: ModelLayer | None = None
    derived: Derived | None = None
