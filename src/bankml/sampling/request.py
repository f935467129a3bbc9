"""The sampling fields of a request body, as llama-server reads them on /v1/chat/completions and /completion.

Values are evaluated in llama-server's order, so that of several mistakes the same one is named. Where llama-server
passes over a mistake (an unknown sampler, an entry of logit_bias it cannot read, a seed or count that wraps around) the
request is refused.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bankml.errors import RequestError
from bankml.sampling.fields import (
    INT32_MAX,
    boolean,
    clamped_integer,
    clamped_real,
    float32,
    integer,
    kind_of,
    real,
    refuse,
)
from bankml.sampling.parameters import LETTERS, NOT_PLAYED, RANDOM_SEED, SPELLINGS, SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary

MOST_BREAKERS = 256  # each is looked for in every token of the vocabulary
DEFAULT_TOP_LOGPROBS = 20
MOST_PROBS = 1000  # reported with each token; an answer keeps them all until it is written

Read = Callable[[Mapping[str, Any], str], Any]


def _within(low: float, high: float = math.inf) -> Read:
    return lambda body, field: clamped_real(body, field, low, high)


def _count(body: Mapping[str, Any], field: str) -> int | None:
    return integer(body, field, 0, INT32_MAX)


def _adaptive_decay(body: Mapping[str, Any], field: str) -> float | None:
    decay = real(body, field)
    if decay is not None and not 0.0 <= decay <= float32(0.99):
        refuse(field, f"Value must be between 0.000000 <= value <= 0.990000, but got {decay:f}")
    return decay


def _seed(body: Mapping[str, Any], field: str) -> int | None:
    seed = integer(body, field, -1, RANDOM_SEED)
    return RANDOM_SEED if seed == -1 else seed


# Field -> how it is read, in llama-server's order. The soft limits move a value into range.
_FIELDS: dict[str, Read] = {
    "top_k": lambda body, field: clamped_integer(body, field, 0, INT32_MAX),
    "top_p": _within(0.0, 1.0),
    "min_p": _within(0.0, 1.0),
    "top_n_sigma": real,
    "xtc_probability": _within(0.0, 1.0),
    "xtc_threshold": _within(0.0, 1.0),
    "typical_p": real,
    "temperature": _within(0.0),
    "dynatemp_range": real,
    "dynatemp_exponent": real,
    "repeat_last_n": _count,
    "repeat_penalty": real,
    "frequency_penalty": real,
    "presence_penalty": real,
    "dry_multiplier": real,
    "dry_base": real,
    "dry_allowed_length": _count,
    "dry_penalty_last_n": _count,
    "mirostat": lambda body, field: clamped_integer(body, field, 0, 2),
    "mirostat_tau": real,
    "mirostat_eta": real,
    "adaptive_target": _within(-math.inf, 1.0),
    "adaptive_decay": _adaptive_decay,
    "seed": _seed,
}


def from_request(
    body: Mapping[str, Any], defaults: SamplingParams, vocabulary: SamplerVocabulary, *, chat: bool = True
) -> SamplingParams:
    """The request's values over `defaults` (model_defaults). A field that is absent or null keeps its default.

    `chat`: the rules of /v1/chat/completions for logprobs and top_logprobs; else those of /completion.
    Raises RequestError naming the field, what it takes and what came.
    """
    n_probs = _chat_n_probs(body) if chat else None
    values: dict[str, Any] = {field: read(body, field) for field, read in _FIELDS.items()}
    if values["dry_base"] is not None and values["dry_base"] < 1.0:
        values["dry_base"] = defaults.dry_base
    values["n_probs"] = _n_probs(body) if n_probs is None else n_probs
    values["min_keep"] = _count(body, "min_keep")
    if boolean(body, "backend_sampling"):
        refuse("backend_sampling", "sampling on a backend is not supported")
    values["post_sampling_probs"] = boolean(body, "post_sampling_probs")
    values["dry_sequence_breakers"] = _breakers(body)
    values["logit_bias"] = _logit_bias(body, vocabulary)
    values["ignore_eos"] = boolean(body, "ignore_eos")
    if values["ignore_eos"]:
        biases = defaults.logit_bias if values["logit_bias"] is None else values["logit_bias"]
        values["logit_bias"] = biases + tuple((token, -math.inf) for token in vocabulary.end_of_generation)
    values["samplers"] = _samplers(body)

    params = replace(defaults, **{field: value for field, value in values.items() if value is not None})
    if problem := params.problem():
        raise RequestError(f"Failed to initialize samplers: {problem}")
    return params


def _chat_n_probs(body: Mapping[str, Any]) -> int | None:
    """What OpenAI's `logprobs: true` with `top_logprobs` asks for; None when `logprobs` is not true."""
    if body.get("logprobs") is True:
        count = integer(body, "top_logprobs", 0, MOST_PROBS)
        return DEFAULT_TOP_LOGPROBS if count is None else count
    if body.get("top_logprobs") is not None:
        raise RequestError("top_logprobs requires logprobs to be set to true")
    return None


def _n_probs(body: Mapping[str, Any]) -> int | None:
    """`n_probs`, or `logprobs` as a number in its place; a boolean counts as 0 or 1."""
    field = "n_probs" if body.get("n_probs") is not None else "logprobs"
    if isinstance(body.get(field), bool):
        return int(body[field])
    return integer(body, field, 0, MOST_PROBS)


def _breakers(body: Mapping[str, Any]) -> tuple[str, ...] | None:
    field = "dry_sequence_breakers"
    value = body.get(field)
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        refuse(field, f"Error: {field} must be a non-empty array of strings")
    if len(value) > MOST_BREAKERS:
        refuse(field, f"at most {MOST_BREAKERS} strings are searched for, but got {len(value)}")
    return tuple(value)


def _logit_bias(body: Mapping[str, Any], vocabulary: SamplerVocabulary) -> tuple[tuple[int, float], ...] | None:
    """`[[token, bias], …]` or `{token: bias}`: the token an id or a text, which biases each of its tokens."""
    value = body.get("logit_bias")
    if value is None:
        return None
    biases: list[tuple[int, float]] = []
    if isinstance(value, list):
        for at, entry in enumerate(value):
            if not isinstance(entry, list) or len(entry) != 2:
                refuse("logit_bias", f"entry {at} must be a pair [token, bias], but got {kind_of(entry)}")
            bias = _bias(entry[1], f"entry {at}")
            biases += [(token, bias) for token in _tokens_of(entry[0], f"entry {at}", vocabulary)]
    elif isinstance(value, dict):
        for key, item in value.items():
            where = f"'{key[:40]}'"
            is_id = re.fullmatch(r"\s*[+-]?\d{1,40}", key, re.ASCII)
            bias = _bias(item, where)
            biases += [(token, bias) for token in _tokens_of(int(key) if is_id else key, where, vocabulary)]
    else:
        refuse("logit_bias", f"Value must be an array of pairs or an object, but got {kind_of(value)}")
    return tuple(biases)


def _bias(value: object, where: str) -> float:
    if value is False:
        return -math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse("logit_bias", f"the bias of {where} must be a number or false, but got {kind_of(value)}")
    try:
        return float32(float(value))
    except OverflowError:
        refuse("logit_bias", f"the bias of {where} must fit a 32-bit float")


def _tokens_of(token: object, where: str, vocabulary: SamplerVocabulary) -> list[int]:
    if isinstance(token, str):
        if not token:
            refuse("logit_bias", f"the token of {where} is an empty text")
        return list(vocabulary.tokenize(token))
    if isinstance(token, bool) or not isinstance(token, int):
        refuse("logit_bias", f"the token of {where} must be an id or a text, but got {kind_of(token)}")
    if not 0 <= token < vocabulary.n_vocab:
        refuse("logit_bias", f"the token of {where} must be between 0 <= id <= {vocabulary.n_vocab - 1}")
    return [token]


MOST_SAMPLERS = 64
"""Samplers of one chain: each costs at every token, and the slot waits meanwhile."""


def _samplers(body: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Names in an array, or letters in a string, in the order they are to run."""
    value = body.get("samplers")
    if value is None:
        return None
    if isinstance(value, str):
        by_letter = {letter: name for name, letter in (LETTERS | NOT_PLAYED).items()}
        names = [(one, by_letter.get(one)) for one in value]
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        names = [(one, SPELLINGS.get(one.lower())) for one in value]
    else:
        refuse("samplers", f"Value must be an array of names or a string of letters, but got {kind_of(value)}")
    if len(value) > MOST_SAMPLERS:
        refuse("samplers", f"expected at most {MOST_SAMPLERS} samplers, but got {len(value)}")
    for given, name in names:
        if name is None:
            known = ", ".join(f"{name} ({letter})" for name, letter in LETTERS.items())
            refuse("samplers", f"there is no sampler '{given[:40]}'; there are {known}")
        if name in NOT_PLAYED:
            refuse("samplers", f"the sampler '{name}' is not supported")
    return tuple(name for _, name in names if name)
