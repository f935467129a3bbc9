"""Ollama's `options`: which set a parameter, which change nothing here, and that every other is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bankml.api.reading.fields import kind_of, parameter, refuse, shown
from bankml.api.reading.generation import read_stop
from bankml.library.parameters import IGNORED, PARAMETERS, as_sampling
from bankml.library.request import UNLIMITED
from bankml.sampling.overrides import NumberRange, SamplingOverrides

NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "tfs_z": (1,),
    "penalize_newline": (True,),
    "embedding_only": (False,),
    "draft_num_predict": (0,),
}
"""Options that Ollama had once, or that nothing here does: the values that change nothing; any other is refused."""

NAMES = (*PARAMETERS, "stop")
"""Every supported option: those a derived model can have too."""


@dataclass(frozen=True)
class Options:
    """What the options set. `num_ctx` is the context in tokens, `max_tokens` a limit or UNLIMITED; None: not set."""

    sampling: SamplingOverrides = field(default_factory=SamplingOverrides)
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    num_ctx: int | None = None


def read_options(given: Mapping[str, Any]) -> Options:
    """The options of a request's body. A `null` is the same as leaving the option out.

    Raises RequestError naming the option: one that is not supported, or a value that is not accepted.
    """
    sampling: dict[str, int | float] = {}
    limits: dict[str, int] = {}
    stop: tuple[str, ...] | None = None
    for name, value in given.items():
        if name not in NAMES and name not in IGNORED and name not in NEUTRAL:
            raise refuse(f"options.{name[:80]}", f"unsupported option (supported: {', '.join(NAMES)})")
        if value is None or name in IGNORED:
            continue
        if name in NEUTRAL:
            _require_neutral(name, value)
            continue
        if name == "stop":
            stop = _stop(value)
        elif name in ("num_predict", "num_ctx"):
            limits[name] = int(_number(name, value))
        else:
            sampling[name] = _number(name, value)
    max_tokens = max(limits["num_predict"], UNLIMITED) if "num_predict" in limits else None
    return Options(as_sampling(sampling), max_tokens, stop, limits.get("num_ctx"))


def _number(name: str, value: Any) -> int | float:
    """The value as `/v1/chat/completions` reads it, with errors that name the option."""
    known, path = PARAMETERS[name], f"options.{name}"
    if known.type is int:
        return parameter(value, path, NumberRange(int, int(known.least), int(known.most)))
    number = parameter(value, path, NumberRange(float))
    if number < known.least:
        raise refuse(path, f"expected a number above 0, but got {shown(value)}")
    return number


def _require_neutral(name: str, value: Any) -> None:
    if isinstance(value, bool) != isinstance(NEUTRAL[name][0], bool) or value not in NEUTRAL[name]:
        accepted = " or ".join(shown(one) for one in NEUTRAL[name])
        raise refuse(f"options.{name}", f"unsupported option: only {accepted} is accepted, but got {shown(value)}")


def _stop(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (str, list)):
        raise refuse("options.stop", f"expected a string or an array of strings, but got {kind_of(value)}")
    return read_stop(value, "options.stop")
