"""The PARAMETERs of a derived model by Ollama's names: types, ranges, and the sampling parameters they set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bankml.errors import RequestError
from bankml.library.names import quoted
from bankml.model.limits import MAX_CONTEXT
from bankml.sampling.overrides import RANGES_BY_NAME, SamplingOverrides

INT32_MAX = 2**31 - 1
FLOAT32_MAX = 3.4028234663852886e38


@dataclass(frozen=True)
class Parameter:
    """One parameter: `field` is its name in SamplingOverrides, or `max_tokens`; None for `num_ctx`."""

    type: type[int] | type[float]
    field: str | None
    least: float
    most: float


def _integer(field: str | None, least: int, most: int = INT32_MAX) -> Parameter:
    return Parameter(int, field, least, most)


def _real(field: str, least: float = -FLOAT32_MAX) -> Parameter:
    return Parameter(float, field, least, FLOAT32_MAX)


# Ranges are those that the sampler accepts; where it clamps a value, any value is accepted here.
PARAMETERS = {
    "temperature": _real("temperature"),
    "top_k": _integer("top_k", -INT32_MAX),
    "top_p": _real("top_p"),
    "min_p": _real("min_p"),
    "typical_p": _real("typical_p"),
    "min_keep": _integer("min_keep", 0),
    "seed": _integer("seed", -(2**63), 2**63 - 1),
    "repeat_last_n": _integer("repeat_last_n", -1),
    "repeat_penalty": _real("repeat_penalty", 1 / FLOAT32_MAX),
    "presence_penalty": _real("presence_penalty"),
    "frequency_penalty": _real("frequency_penalty"),
    "mirostat": _integer("mirostat", 0, 2),
    "mirostat_tau": _real("mirostat_tau"),
    "mirostat_eta": _real("mirostat_eta"),
    "num_predict": _integer("max_tokens", -INT32_MAX),
    "num_ctx": _integer(None, 1),
}
MOST_STOPS = 1024
"""Stop strings of one model at most, as many as a request may have."""

IGNORED = frozenset(
    {
        "num_thread",
        "num_gpu",
        "main_gpu",
        "num_batch",
        "use_mmap",
        "use_mlock",
        "low_vram",
        "numa",
        "f16_kv",
        "vocab_only",
        "logits_all",
        "num_keep",
    }
)
"""Ollama's parameters about how its runner works, not about the answer: accepted and not kept."""

WHOLE_CONTEXT = -1
"""`repeat_last_n` of all tokens in the context, as in Ollama."""


def as_sampling(values: Mapping[str, int | float]) -> SamplingOverrides:
    """The sampling parameters that parameters of these names set; `num_predict` and `num_ctx` are none."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        field = PARAMETERS[name].field
        if field in RANGES_BY_NAME:
            number = MAX_CONTEXT if name == "repeat_last_n" and value == WHOLE_CONTEXT else value
            fields[field] = RANGES_BY_NAME[field].clamped(number)
    return SamplingOverrides(**fields)


def checked(name: str, value: object) -> int | float:
    """`value` as the type of the parameter `name`. Raises RequestError with the parameter and its range.

    An integral number is accepted for an integer however it is written, as in Ollama's JSON.
    """
    known = PARAMETERS.get(name)
    if known is None:
        raise unknown(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(name, known, value)
    if known.type is int and value != int(value):
        raise _wrong(name, known, value)
    if not known.least <= value <= known.most:
        raise _wrong(name, known, value)
    return known.type(value)


def from_text(name: str, text: str) -> int | float:
    """As `checked`, of a value in a Modelfile: `10` for an integer, `0.7` or `1e-3` for a real number."""
    known = PARAMETERS.get(name)
    if known is None:
        raise unknown(name)
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        return checked(name, known.type(text))
    except (ValueError, OverflowError, RequestError):
        raise _wrong(name, known, text) from None


def checked_stop(value: object) -> str:
    """One stop string. Raises RequestError."""
    if not isinstance(value, str) or not value:
        raise RequestError("the parameter stop must be a non-empty string")
    return value


def checked_stops(values: Sequence[object]) -> tuple[str, ...]:
    """All stop strings of a model. Raises RequestError."""
    if len(values) > MOST_STOPS:
        raise RequestError(f"the parameter stop occurs {len(values)} times, the limit is {MOST_STOPS}")
    return tuple(checked_stop(one) for one in values)


def unknown(name: str) -> RequestError:
    return RequestError(f"unsupported parameter {quoted(name)} (supported: {', '.join([*PARAMETERS, 'stop'])})")


def _wrong(name: str, known: Parameter, value: object) -> RequestError:
    if known.type is int:
        takes = f"a whole number from {int(known.least)} to {int(known.most)}"
    else:
        takes = "a number above 0" if known.least > 0 else "a number"
    got = quoted(value) if isinstance(value, str) else str(value)[:80]
    return RequestError(f"the parameter {name} must be {takes}, not {got}")
