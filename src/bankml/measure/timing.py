"""Timing of one completion; its token counts are kept beside it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one completion by the native engine, None where something was not measured.

    `model` is the requested model's name, of a derived model its own. `prompt_ms` is from the start of computing to
    the first token, `eval_ms` from there to the last; `ttft_ms` counts from the request's first byte. `grammar_ms` was
    spent on keeping the answer to a grammar, for which `resampled` tokens were drawn again. `energy_j` are the joules
    that the processor's packages used meanwhile, by all processes. The two hashes are those of the response's receipt;
    an answer that was broken off (`finish` is "cancelled") has none.
    """

    model: str
    finish: str
    prompt_ms: float
    ttft_ms: float | None
    eval_ms: float
    grammar_ms: float | None = None
    resampled: int | None = None
    energy_j: float | None = None
    request_sha256: str | None = None
    response_sha256: str | None = None
