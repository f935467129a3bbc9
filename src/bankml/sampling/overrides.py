"""The sampling parameters that a request sets, over the model's own defaults."""

import math
from dataclasses import dataclass, fields, replace

from bankml.errors import RequestError
from bankml.sampling.numbers import INT32_MAX, INT32_MIN, float32
from bankml.sampling.parameters import RANDOM_SEED, SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary


@dataclass(frozen=True)
class NumberRange:
    """A numeric parameter: values outside `low` to `high` (inclusive) are an error, and values outside `soft_low` to
    `soft_high` are clamped, as in llama-server."""

    type: type[int] | type[float]
    low: float = -math.inf
    high: float = math.inf
    soft_low: float = -math.inf
    soft_high: float = math.inf

    def clamped(self, value: float) -> int | float:
        """`value`, which is within the hard range, as the parameter's type and within the soft range."""
        if self.type is int:
            return int(max(self.soft_low, min(self.soft_high, int(value))))
        return max(self.soft_low, min(self.soft_high, float32(value)))


def _integer(low: int = INT32_MIN, high: int = INT32_MAX, soft_low: float = -math.inf) -> NumberRange:
    return NumberRange(int, low, high, soft_low)


def _real(soft_low: float = -math.inf, soft_high: float = math.inf) -> NumberRange:
    return NumberRange(float, soft_low=soft_low, soft_high=soft_high)


RANGES: dict[str, NumberRange] = {
    "top_k": _integer(soft_low=0),
    "top_p": _real(0.0, 1.0),
    "min_p": _real(0.0, 1.0),
    "top_n_sigma": _real(),
    "xtc_probability": _real(0.0, 1.0),
    "xtc_threshold": _real(0.0, 1.0),
    "typical_p": _real(),
    "temperature": _real(0.0),
    "dynatemp_range": _real(),
    "dynatemp_exponent": _real(),
    "repeat_last_n": _integer(0),
    "repeat_penalty": _real(),
    "frequency_penalty": _real(),
    "presence_penalty": _real(),
    "dry_multiplier": _real(),
    "dry_base": _real(),
    "dry_allowed_length": _integer(0),
    "dry_penalty_last_n": _integer(0),
    "mirostat": NumberRange(int, INT32_MIN, INT32_MAX, 0, 2),
    "mirostat_tau": _real(),
    "mirostat_eta": _real(),
    "adaptive_target": _real(soft_high=1.0),
    "adaptive_decay": NumberRange(float, 0.0, float32(0.99)),
    "seed": NumberRange(int, -(2**63), 2**64 - 1),
}
"""The numeric parameters in the order in which llama-server evaluates them."""

COUNTS: dict[str, NumberRange] = {"min_keep": _integer(0)}
"""Numeric parameters that llama-server evaluates after the others."""

RANGES_BY_NAME = RANGES | COUNTS


@dataclass(frozen=True)
class TokenBias:
    """A bias (-inf: banned) of a token, by its id or by a text that stands for each of its tokens. `where` names the
    entry of the request for messages."""

    token: int | str
    bias: float
    where: str


@dataclass(frozen=True)
class SamplingOverrides:
    """The sampling parameters that a request sets, named as in SamplingParams; None keeps the model's default.

    Numbers are within RANGES.
    """

    seed: int | None = None
    temperature: float | None = None
    dynatemp_range: float | None = None
    dynatemp_exponent: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    top_n_sigma: float | None = None
    typical_p: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    min_keep: int | None = None
    repeat_last_n: int | None = None
    repeat_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_penalty_last_n: int | None = None
    dry_sequence_breakers: tuple[str, ...] | None = None
    mirostat: int | None = None
    mirostat_tau: float | None = None
    mirostat_eta: float | None = None
    adaptive_target: float | None = None
    adaptive_decay: float | None = None
    samplers: tuple[str, ...] | None = None
    logit_bias: tuple[TokenBias, ...] | None = None
    ignore_eos: bool | None = None
    n_probs: int | None = None
    post_sampling_probs: bool | None = None

    def over(self, defaults: SamplingParams, vocabulary: SamplerVocabulary) -> SamplingParams:
        """These values over a model's `defaults`. Raises RequestError for a token id outside the vocabulary, and in
        llama-server's words for values that no sampler accepts."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.seed is not None:
            values["seed"] = self.seed & RANDOM_SEED  # modulo 2^32, as llama-server and Ollama do; -1 is random
        if self.dry_base is not None and self.dry_base < 1.0:
            values["dry_base"] = None
        biases = defaults.logit_bias if self.logit_bias is None else _biases(self.logit_bias, vocabulary)
        if self.ignore_eos:
            biases += tuple((token, -math.inf) for token in vocabulary.end_of_generation)
        values["logit_bias"] = biases
        params = replace(defaults, **{name: value for name, value in values.items() if value is not None})
        if problem := params.problem():
            raise RequestError(f"Failed to initialize samplers: {problem}")
        return params

    def or_else(self, fallback: "SamplingOverrides") -> "SamplingOverrides":
        """These values, and those of `fallback` where these are None."""
        names = [field.name for field in fields(self) if getattr(self, field.name) is None]
        return replace(self, **{name: getattr(fallback, name) for name in names})


def _biases(given: tuple[TokenBias, ...], vocabulary: SamplerVocabulary) -> tuple[tuple[int, float], ...]:
    biases: list[tuple[int, float]] = []
    for one in given:
        if isinstance(one.token, str):
            biases += [(token, one.bias) for token in vocabulary.tokenize(one.token)]
        elif 0 <= one.token < vocabulary.n_vocab:
            biases.append((one.token, one.bias))
        else:
            raise RequestError(
                f"Field 'logit_bias': the token of {one.where} must be between 0 <= id <= {vocabulary.n_vocab - 1}"
            )
    return tuple(biases)
