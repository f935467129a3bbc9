"""Ollama's `options`: which are honoured and as what, which change nothing here, and that every other is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api.chat_request import stop_strings
from bankml.api.fields import refuse, shown
from bankml.engine.completion import UNLIMITED
from bankml.errors import RequestError
from bankml.library.parameters import PARAMETERS
from bankml.sampling.fields import integer, real

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
"""Options that say how Ollama's runner is to work, not what the answer is to be."""

NAMES = (*PARAMETERS, "stop")
"""Every option that is honoured: those a derived model can have too."""


@dataclass(frozen=True)
class Options:
    """`fields` are those of a `/v1/chat/completions` body, `stop` included. `num_ctx` is the context in tokens, None
    where it was not asked for."""

    fields: Mapping[str, Any]
    num_ctx: int | None = None


def read_options(given: Mapping[str, Any]) -> Options:
    """The options of a request's body. A `null` is the same as leaving the option out.

    Raises RequestError naming the option: one that is not honoured, or a value that cannot be.
    """
    fields: dict[str, Any] = {}
    num_ctx: int | None = None
    for name, value in given.items():
        if name not in NAMES and name not in IGNORED:
            raise refuse(f"options.{name[:80]}", f"there is no such option here; there are {', '.join(NAMES)}")
        if value is None or name in IGNORED:
            continue
        if name == "stop":
            fields["stop"] = _stop(given)
            continue
        number, field = _number(name, value), PARAMETERS[name].field
        if field is None:
            num_ctx = int(number)
        else:
            fields[field] = number
    if fields.get("max_tokens", 0) < 0:
        fields["max_tokens"] = UNLIMITED
    return Options(fields, num_ctx)


def _number(name: str, value: Any) -> int | float:
    """The value as `/v1/chat/completions` reads it. What it refuses is refused in the same words, which are
    llama-server's, and what the sampler would refuse by its own name for it, by the option's."""
    known, path = PARAMETERS[name], f"options.{name}"
    given = {path: value}
    if known.type is int:
        return integer(given, path, int(known.least), int(known.most)) or 0
    number = real(given, path) or 0.0
    if number < known.least:
        raise refuse(path, f"expected a number above 0, but got {shown(value)}")
    return number


def _stop(given: Mapping[str, Any]) -> list[str]:
    if not isinstance(given["stop"], (str, list)):
        raise refuse("options.stop", f"expected a string or an array of strings, but got {shown(given['stop'])}")
    try:
        return list(stop_strings(given))
    except RequestError as error:
        raise RequestError(error.message.replace("Field 'stop", "Field 'options.stop", 1)) from None
