"""The model of a worker on another machine: a path there, or the file's bytes, and the pin that either has to match."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bankml.errors import BankmlError
from bankml.files import atomic_write
from bankml.gate.contents import memory_for
from bankml.gate.verify import Verified, verify
from bankml.library.load import LoadOptions
from bankml.library.supported import require_supported


@dataclass(frozen=True)
class ModelCopy:
    """A file by its `path` on the machine that uses it, or a shipped one (`shipped`), which is written there under its
    sha256 first. `name` and `sha256` are those of the pin."""

    name: str
    sha256: str
    path: str
    shipped: bool = False


@dataclass(frozen=True)
class CopyOptions:
    """What a batch loads models with, as plain values: they go to other machines. `environment` has the BANKML_
    variables of the machine that started the batch."""

    n_ctx: int
    threads: int
    parallel: int
    embeddings: bool
    pooling: Any
    reasoning: bool
    content_special: Any
    environment: Mapping[str, str]

    @property
    def load_options(self) -> LoadOptions:
        return LoadOptions(
            self.n_ctx,
            self.threads,
            self.environment,
            reasoning=self.reasoning,
            content_special=self.content_special,
            parallel=self.parallel,
            embeddings=self.embeddings,
            pooling=self.pooling,
        )


def verified_copy(model: ModelCopy, content: Any = None) -> Verified:
    """The file, guarded, hashed and compared with the pin; of a shipped one `content` are the bytes. Raises Refused,
    Truncated, FileProblem."""
    if not model.shipped:
        return _verified(model, model.path)
    folder = Path(tempfile.gettempdir()) / f"bankml-batch-{os.getuid()}" / model.sha256
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / model.name
    if path.exists():  # another worker wrote it, or an earlier batch did; it is trusted no more than any other file
        with suppress(BankmlError):
            return _verified(model, str(path))
    with atomic_write(path) as file:
        file.write(memoryview(content))
    return _verified(model, str(path))


def _verified(model: ModelCopy, path: str) -> Verified:
    with tempfile.TemporaryDirectory(prefix="bankml-batch-") as folder:
        fork = Path(folder) / "FORK.json"
        fork.write_text(json.dumps({"files": [{"path": model.name, "sha256": model.sha256}]}))
        return verify(path, fork, name=model.name, require=require_supported, into=memory_for)
