"""What the answers of a batch depend on besides their requests: all of them have to be computed with the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.library.resident import Resident
from bankml.receipt.receipt import sha256_hex
from bankml.receipt.replay_record import Arithmetic


@dataclass(frozen=True)
class TemplateUse:
    """A chat template's sha256, and the options `--reasoning` and `--content-special`."""

    sha256: str
    reasoning: bool
    content_special: str


@dataclass(frozen=True)
class Computation:
    """`model_sha256` is that of the file. `arithmetic` is None of embeddings, `template` of what is no chat."""

    model_sha256: str
    engine: str
    arithmetic: Arithmetic | None = None
    template: TemplateUse | None = None

    @classmethod
    def of_receipt(cls, receipt: Mapping[str, Any]) -> Computation:
        """Raises KeyError, TypeError for what is no receipt."""
        replay = receipt.get("replay")
        template = None if replay is None else replay.get("template")
        names = ("sha256", "reasoning", "content_special")
        return cls(
            receipt["model_sha256"],
            f"{receipt['engine']}, bankml {receipt['bankml']}",
            None if replay is None else Arithmetic(replay["n_ctx"], replay["cache_type"], replay["llama_threads"]),
            None if template is None else TemplateUse(*(template[name] for name in names)),
        )

    @classmethod
    def of_resident(cls, resident: Resident, version: str) -> Computation:
        """What a model of this process computes with."""
        source = sha256_hex(resident.template.source.encode("utf-8", "surrogatepass"))
        return cls(
            resident.provenance.model_sha256,
            f"{resident.provenance.engine}, bankml {version}",
            resident.arithmetic,
            TemplateUse(source, resident.reasoning, resident.content_special),
        )

    def difference(self, other: Computation) -> str | None:
        """In what `other` differs, of what both have; None: in nothing."""
        for name, value in vars(self).items():
            found = getattr(other, name)
            if None not in (value, found) and value != found:
                return f"{name} is {found}, not {value}"
        return None
