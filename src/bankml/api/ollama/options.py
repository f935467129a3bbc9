"""Ollama's `options`: which are honoured and as what, which change nothing here, and that every other is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api.chat_request import stop_strings
from bankml.api.fields import INT32_MAX, refuse, shown
from bankml.engine.completion import UNLIMITED
from bankml.errors import RequestError

INT32_MIN = -(2**31)


@dataclass(frozen=True)
class Real:
    """An option that is any number; the field of `/v1/chat/completions` that it becomes has its own rules for it."""

    field: str


@dataclass(frozen=True)
class Whole:
    """An option that is a whole number from `least` to `most`; a fraction is cut off."""

    field: str
    least: int
    most: int = INT32_MAX


HONOURED: Mapping[str, Real | Whole] = {
    "temperature": Real("temperature"),
    "top_k": Whole("top_k", INT32_MIN),
    "top_p": Real("top_p"),
    "min_p": Real("min_p"),
    "typical_p": Real("typical_p"),
    "min_keep": Whole("min_keep", 0),
    "seed": Whole("seed", -1, 2**32 - 1),
    "repeat_last_n": Whole("repeat_last_n", -1),
    "repeat_penalty": Real("repeat_penalty"),
    "presence_penalty": Real("presence_penalty"),
    "frequency_penalty": Real("frequency_penalty"),
    "num_predict": Whole("max_tokens", INT32_MIN),
}
"""The options that are a field of a `/v1/chat/completions` body. `stop` is one too, but no number."""

NUM_CTX = Whole("num_ctx", 1)
"""Honoured, but no field of another API: what goes beyond it is cut off here."""

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

NAMES = (*HONOURED, "num_ctx", "stop")
"""Every option that is honoured."""


@dataclass(frozen=True)
class Options:
    """`fields` are those of a `/v1/chat/completions` body, `stop` included; a `repeat_last_n` of -1 is the whole
    context. `num_ctx` is the context in tokens, None where it was not asked for."""

    fields: Mapping[str, Any]
    num_ctx: int | None = None


def read_options(given: Mapping[str, Any], path: str = "options") -> Options:
    """The options of a request's body. A `null` is the same as leaving the option out.

    Raises RequestError naming `options.NAME`: an option that nobody honours, or a value that cannot be.
    """
    fields: dict[str, Any] = {}
    num_ctx: int | None = None
    for name, value in given.items():
        if name not in NAMES and name not in IGNORED:
            raise refuse(f"{path}.{name}", f"there is no such option here; those there are: {', '.join(NAMES)}")
        if value is None or name in IGNORED:
            continue
        if name == "stop":
            fields["stop"] = _stop(given, path)
        elif name == "num_ctx":
            num_ctx = int(_number(f"{path}.{name}", NUM_CTX, value))
        else:
            fields[HONOURED[name].field] = _number(f"{path}.{name}", HONOURED[name], value)
    if fields.get("max_tokens", 0) < 0:
        fields["max_tokens"] = UNLIMITED
    return Options(fields, num_ctx)


def _number(path: str, option: Real | Whole, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refuse(path, f"expected a number, but got {shown(value)}")
    number: int | float = value
    if isinstance(option, Whole):
        number = int(value)
        if not option.least <= number <= option.most:
            got = number if abs(number) < 10**20 else value
            raise refuse(path, f"expected a whole number from {option.least} to {option.most}, but got {got}")
    return number


def _stop(given: Mapping[str, Any], path: str) -> list[str]:
    if not isinstance(given["stop"], (str, list)):
        raise refuse(f"{path}.stop", f"expected a string or an array of strings, but got {shown(given['stop'])}")
    try:
        return list(stop_strings(given))
    except RequestError as error:
        raise RequestError(error.message.replace("Field 'stop", f"Field '{path}.stop", 1)) from None
