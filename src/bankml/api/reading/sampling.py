"""The sampling fields of a request, as llama-server reads them on /v1/chat/completions and /completion.

Fields are evaluated in llama-server's order, so that of several mistakes the same one is named. Where llama-server
ignores a mistake (an unknown sampler, an entry of logit_bias it cannot read, a count that wraps around) the request is
refused.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from bankml.api.reading.fields import kind_of, parameter, refuse
from bankml.errors import RequestError
from bankml.sampling.numbers import float32
from bankml.sampling.overrides import COUNTS, RANGES, NumberRange, SamplingOverrides, TokenBias
from bankml.sampling.parameters import LETTERS, SPELLINGS, UNSUPPORTED_SAMPLERS

MOST_BREAKERS = 256  # each is looked for in every token of the vocabulary
DEFAULT_TOP_LOGPROBS = 20
MOST_PROBS = 1000  # reported with each token; a response keeps them all until it is written
MOST_SAMPLERS = 64
"""Samplers of one chain: each costs time at every token."""

_PROBS = NumberRange(int, 0, MOST_PROBS)


def read_sampling(body: Mapping[str, Any], *, chat: bool = True) -> SamplingOverrides:
    """The sampling parameters that `body` sets. A field that is absent or null sets nothing.

    `chat`: the rules of /v1/chat/completions for logprobs and top_logprobs; else those of /completion.
    Raises RequestError naming the field, what it accepts and what was received.
    """
    n_probs = _chat_n_probs(body) if chat else None
    values: dict[str, Any] = {name: _number(body, name, limits) for name, limits in RANGES.items()}
    values["n_probs"] = _n_probs(body) if n_probs is None else n_probs
    values |= {name: _number(body, name, limits) for name, limits in COUNTS.items()}
    if _flag(body, "backend_sampling"):
        raise refuse("backend_sampling", "sampling on a backend is not supported")
    return SamplingOverrides(
        **values,
        post_sampling_probs=_flag(body, "post_sampling_probs"),
        dry_sequence_breakers=_breakers(body),
        logit_bias=_logit_bias(body),
        ignore_eos=_flag(body, "ignore_eos"),
        samplers=_samplers(body),
    )


def _number(body: Mapping[str, Any], name: str, limits: NumberRange) -> int | float | None:
    value = body.get(name)
    return None if value is None else parameter(value, name, limits)


def _flag(body: Mapping[str, Any], name: str) -> bool | None:
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise refuse(name, f"Value must be a boolean, but got {kind_of(value)}")


def _chat_n_probs(body: Mapping[str, Any]) -> int | None:
    """What OpenAI's `logprobs: true` with `top_logprobs` asks for; None when `logprobs` is not true."""
    if body.get("logprobs") is True:
        count = _number(body, "top_logprobs", _PROBS)
        return DEFAULT_TOP_LOGPROBS if count is None else max(1, int(count))
    if body.get("top_logprobs") is not None:
        raise RequestError("top_logprobs requires logprobs to be set to true")
    return None


def _n_probs(body: Mapping[str, Any]) -> int | float | None:
    """`n_probs`, or `logprobs` as a number in its place; a boolean counts as 0 or 1."""
    name = "n_probs" if body.get("n_probs") is not None else "logprobs"
    if isinstance(body.get(name), bool):
        return int(body[name])
    return _number(body, name, _PROBS)


def _breakers(body: Mapping[str, Any]) -> tuple[str, ...] | None:
    name = "dry_sequence_breakers"
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise refuse(name, f"Error: {name} must be a non-empty array of strings")
    if len(value) > MOST_BREAKERS:
        raise refuse(name, f"at most {MOST_BREAKERS} strings are searched for, but got {len(value)}")
    return tuple(value)


def _logit_bias(body: Mapping[str, Any]) -> tuple[TokenBias, ...] | None:
    """`[[token, bias], …]` or `{token: bias}`: the token an id or a text, which biases each of its tokens."""
    value = body.get("logit_bias")
    if value is None:
        return None
    biases: list[TokenBias] = []
    if isinstance(value, list):
        for at, entry in enumerate(value):
            if not isinstance(entry, list) or len(entry) != 2:
                raise refuse("logit_bias", f"entry {at} must be a pair [token, bias], but got {kind_of(entry)}")
            biases.append(_token_bias(entry[0], entry[1], f"entry {at}"))
    elif isinstance(value, dict):
        for key, item in value.items():
            is_id = re.fullmatch(r"\s*[+-]?\d{1,40}", key, re.ASCII)
            biases.append(_token_bias(int(key) if is_id else key, item, f"'{key[:40]}'"))
    else:
        raise refuse("logit_bias", f"Value must be an array of pairs or an object, but got {kind_of(value)}")
    return tuple(biases)


def _token_bias(token: object, bias: object, where: str) -> TokenBias:
    value = _bias(bias, where)
    if isinstance(token, str):
        if not token:
            raise refuse("logit_bias", f"the token of {where} is an empty text")
    elif isinstance(token, bool) or not isinstance(token, int):
        raise refuse("logit_bias", f"the token of {where} must be an id or a text, but got {kind_of(token)}")
    return TokenBias(token, value, where)


def _bias(value: object, where: str) -> float:
    if value is False:
        return -math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refuse("logit_bias", f"the bias of {where} must be a number or false, but got {kind_of(value)}")
    try:
        return float32(float(value))
    except OverflowError:
        raise refuse("logit_bias", f"the bias of {where} must fit a 32-bit float") from None


def _samplers(body: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Names in an array, or letters in a string, in the order in which they run."""
    value = body.get("samplers")
    if value is None:
        return None
    if isinstance(value, str):
        by_letter = {letter: name for name, letter in (LETTERS | UNSUPPORTED_SAMPLERS).items()}
        names = [(one, by_letter.get(one)) for one in value]
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        names = [(one, SPELLINGS.get(one.lower())) for one in value]
    else:
        raise refuse("samplers", f"Value must be an array of names or a string of letters, but got {kind_of(value)}")
    if len(value) > MOST_SAMPLERS:
        raise refuse("samplers", f"expected at most {MOST_SAMPLERS} samplers, but got {len(value)}")
    for given, name in names:
        if name is None:
            known = ", ".join(f"{name} ({letter})" for name, letter in LETTERS.items())
            raise refuse("samplers", f"there is no sampler '{given[:40]}'; there are {known}")
        if name in UNSUPPORTED_SAMPLERS:
            raise refuse("samplers", f"the sampler '{name}' is not supported")
    return tuple(name for _, name in names if name)
