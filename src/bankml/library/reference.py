"""What a model's name stands for: small frozen records that name a model and load nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


@dataclass(frozen=True)
class PinnedFile:
    """A GGUF with a record: what can be made resident.

    `name` is its file's stem, lower-cased; `file` its file's name and `sha256` (64 lower-case hex digits) as recorded;
    `fork` the path of the FORK.json that records it; `path` where the file is now, None where it is not found: that
    does not make it another source.
    """

    name: str
    file: str
    sha256: str
    fork: str
    path: str | None = field(compare=False)

    @classmethod
    def of(cls, verified: Verified) -> PinnedFile:
        """The source that was verified."""
        stem = os.path.splitext(verified.name)[0].lower()
        return cls(stem, verified.name, verified.sha256, verified.fork_path, verified.path)


@dataclass(frozen=True)
class ModelLayer:
    """What a derived model lays over its base; every value is JSON.

    `parameters` are by Ollama's names (`num_ctx`, `temperature`; the options that are honoured, without `stop`), each
    an int or a float. `messages` have `role` (system, user, assistant) and `content`. `license` are the texts of its
    LICENSE lines. `template_sha256` is of the base's own chat template (UTF-8), `base_sha256` the base's pin when the
    layer was made; `requires` what REQUIRES says.
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
    """A derived model as its manifest, `<registry>/<name>.MODEL.json`, gives it.

    `created_at` is an RFC 3339 time in UTC, `digest` the sha256 (64 hex digits) of the layer's content, `path` where
    the manifest lies. `base` is what its base is pinned to now, which is what it was made of.
    """

    name: str
    created_at: str
    base: PinnedFile
    layer: ModelLayer
    digest: str
    path: str


@dataclass(frozen=True)
class Reference:
    """What a name stands for: a file and, for a derived model, the layer over it.

    `name` is the model's own name, whatever alias it was asked by; `derived` is the manifest's record behind `layer`.
    """

    name: str
    source: PinnedFile
    layer: ModelLayer | None = None
    derived: Derived | None = None
