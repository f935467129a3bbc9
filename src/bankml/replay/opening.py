"""Opens a verified model with the arithmetic that a record names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bankml.errors import UsageError
from bankml.library.load import LoadOptions, open_library
from bankml.library.reference import PinnedFile
from bankml.library.registry import Registry
from bankml.library.residency import Library
from bankml.receipt.replay_record import ReplayRecord
from bankml.replay.replay import WIDTH
from bankml.replay.verdict import NotReplayable
from bankml.text.special_content import CONTENT_SPECIAL

if TYPE_CHECKING:
    from bankml.gate.verify import Verified


def open_for(
    record: ReplayRecord,
    verified: Verified,
    registry: str | None = None,
    threads: int | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Library:
    """The library for one replay: its startup model is the verified file, derived models are those of `registry`.

    Raises NotReplayable for options that are none here, Refused for an unsupported model.
    """
    template = record.template
    wanted = template.content_special if template is not None else "parse"
    special = next((one for one in CONTENT_SPECIAL if one == wanted), None)
    if special is None:
        raise NotReplayable("template", f"the server had --content-special {wanted!r:.40}, which is unknown here")
    own = {
        "BANKML_CACHE_TYPE": record.arithmetic.cache_type,
        "BANKML_LLAMA_THREADS": str(record.arithmetic.llama_threads),
    }
    options = LoadOptions(
        record.arithmetic.n_ctx,
        threads,
        {**environment, **own},
        reasoning=template is not None and template.reasoning,
        content_special=special,
        parallel=max(WIDTH, len(record.answers)),
    )
    try:
        return open_library(verified, options, Registry(registry, PinnedFile.of(verified), any_model=True))
    except UsageError as error:  # a context or a type of cache that is none
        raise NotReplayable("arithmetic", error.message) from error
