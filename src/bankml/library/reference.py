"""What a name stands for: a model file with a record, and what a derived model lays over it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


@dataclass(frozen=True)
class Source:
    """A GGUF file with a record, which can be made resident once it is verified.

    `name` is its file's stem, lower-cased; `file` the file's name and `sha256` its 64 lower-case hex digits, as they
    are recorded in the FORK.json at `fork`. `path` is where the file is, None where it was not found.
    """

    name: str
    file: str
    sha256: str
    fork: str
    path: str | None

    @classmethod
    def of(cls, verified: Verified) -> Source:
        """The source that was verified."""
        stem = os.path.splitext(verified.name)[0].lower()
        return cls(stem, verified.name, verified.sha256, verified.fork_path, verified.path)


@dataclass(frozen=True)
class Layer:
    """What a derived model lays over its base: a system message, defaults of a request, the beginning of each talk."""

    system: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    messages: tuple[Mapping[str, str], ...] = ()
    license: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reference:
    """What a name stands for: a source, as it is or under a layer."""

    name: str
    source: Source
    layer: Layer | None = None
