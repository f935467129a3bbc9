"""Sampling parameters: the request's fields over the model's over llama.cpp's defaults."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bankml.errors import Refused
from bankml.sampling.numbers import INT32_MAX, INT32_MIN, float32

RANDOM_SEED = 0xFFFF_FFFF  # a request's seed of -1: a new one each time

# The samplers of a chain by llama-server's names, and the letter of the short form: "kpt" is top_k, top_p, temperature.
LETTERS = {
    "penalties": "e",
    "dry": "d",
    "top_n_sigma": "s",
    "top_k": "k",
    "typ_p": "y",
    "top_p": "p",
    "min_p": "m",
    "xtc": "x",
    "temperature": "t",
    "adaptive_p": "a",
}
DEFAULT_SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
# Known to llama-server, unsupported here: it merges tokens by their texts, for code completion.
UNSUPPORTED_SAMPLERS = {"infill": "i"}


def _spellings() -> dict[str, str]:
    spellings = {"nucleus": "top_p", "temp": "temperature", "typ": "typ_p"}
    for name in (*LETTERS, *UNSUPPORTED_SAMPLERS):
        for spelling in (name, name.replace("_", "-"), name.replace("_", "")):
            spellings[spelling] = name
    return spellings


# Every spelling of a sampler's name, in lower case, and the name.
SPELLINGS = _spellings()


@dataclass(frozen=True)
class SamplingParams:
    """Every value a chain is built from. Floats are 32-bit values; names as in a request."""

    seed: int = RANDOM_SEED
    temperature: float = float32(0.8)  # 0 and below: the likeliest token
    dynatemp_range: float = 0.0  # 0: off
    dynatemp_exponent: float = 1.0
    top_k: int = 40  # 0 and below: off
    top_p: float = float32(0.95)  # 1 and above: off
    min_p: float = float32(0.05)  # 0 and below: off
    top_n_sigma: float = -1.0  # 0 and below: off
    typical_p: float = 1.0  # 1 and above: off
    xtc_probability: float = 0.0  # 0: off
    xtc_threshold: float = float32(0.1)  # above 0.5: off
    min_keep: int = 0
    repeat_last_n: int = 64  # 0: no penalties
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    dry_multiplier: float = 0.0  # 0: off
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64  # 0: off
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    mirostat: int = 0  # 0 off, 1, 2
    mirostat_tau: float = 5.0
    mirostat_eta: float = float32(0.1)
    adaptive_target: float = -1.0  # below 0: off
    adaptive_decay: float = float32(0.9)
    samplers: tuple[str, ...] = DEFAULT_SAMPLERS
    logit_bias: tuple[tuple[int, float], ...] = ()  # (token, bias), -inf bans
    suppressed: tuple[int, ...] = ()  # tokens the model's header bans
    ignore_eos: bool = False  # already in logit_bias
    n_probs: int = 0  # how many top tokens to report with each token; 0: no probabilities
    post_sampling_probs: bool = False  # probabilities after the chain, not those of the raw logits

    def problem(self) -> str | None:
        """Why these values are invalid, in llama-server's words; None if they are valid."""
        penalty = self.repeat_penalty
        if penalty <= 0.0 or not _inverts(penalty):
            return "penalty_repeat must be finite and greater than 0"
        return None


def as_fields(params: SamplingParams) -> dict[str, object]:
    """`params` as the fields of a request, as llama-server shows them.

    Tokens banned by the model's header are no field of a request and omitted; a bias of -inf, which JSON cannot
    represent, is null.
    """
    fields = {name: value for name, value in asdict(params).items() if name != "suppressed"}
    biases = ({"token": token, "bias": bias if math.isfinite(bias) else None} for token, bias in params.logit_bias)
    return fields | {"logit_bias": list(biases)}


def _inverts(value: float) -> bool:
    try:
        float32(1.0 / value)
    except OverflowError:
        return False
    return True


# Header key -> field; those llama.cpp applies, and no other.
_FLOAT_KEYS = {
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.xtc_probability": "xtc_probability",
    "general.sampling.xtc_threshold": "xtc_threshold",
    "general.sampling.temp": "temperature",
    "general.sampling.penalty_repeat": "repeat_penalty",
    "general.sampling.mirostat_tau": "mirostat_tau",
    "general.sampling.mirostat_eta": "mirostat_eta",
}
_INTEGER_KEYS = {
    "general.sampling.top_k": "top_k",
    "general.sampling.penalty_last_n": "repeat_last_n",
    "general.sampling.mirostat": "mirostat",
}
_SEQUENCE_KEY = "general.sampling.sequence"
_SUPPRESS_KEY = "tokenizer.ggml.suppress_tokens"


def model_defaults(metadata: Mapping[str, Any]) -> SamplingParams:
    """The header's `general.sampling.*` over llama.cpp's defaults.

    llama.cpp prints each value (floats to six decimals) into a buffer and parses the number at the text's beginning;
    what the buffer (of 64, 128 or 512 bytes) cannot hold is cut off, a value that is not a number is ignored, and so is
    an unknown name in `general.sampling.sequence`. Raises Refused if a value would stop llama-server from starting, or
    names an unsupported sampler.
    """
    values: dict[str, Any] = {}
    for key, field in _FLOAT_KEYS.items():
        number = _leading_number(metadata.get(key), 127, r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
        if number is not None:
            try:
                values[field] = float32(float(number))
            except OverflowError:
                raise Refused(f"{key} must fit a 32-bit float, but is {number.strip()}") from None
    for key, field in _INTEGER_KEYS.items():
        number = _leading_number(metadata.get(key), 63, r"\s*[+-]?\d+")
        if number is not None:
            values[field] = int(number)
            if not INT32_MIN <= values[field] <= INT32_MAX:
                raise Refused(f"{key} must be a 32-bit integer, but is {number.strip()[:40]}")
    if isinstance(sequence := metadata.get(_SEQUENCE_KEY), str) and sequence:
        names = (SPELLINGS.get(name.lower()) for name in _cut(sequence, 511).split(";"))
        values["samplers"] = tuple(name for name in names if name)
    if isinstance(suppressed := metadata.get(_SUPPRESS_KEY), list | tuple):
        values["suppressed"] = tuple(int(token) for token in suppressed)

    params = SamplingParams(**values)
    if params.mirostat not in (0, 1, 2):
        raise Refused(f"general.sampling.mirostat must be 0, 1 or 2, but is {params.mirostat}")
    if params.problem():
        raise Refused(f"general.sampling.penalty_repeat is {params.repeat_penalty}: {params.problem()}")
    if unsupported := [name for name in params.samplers if name in UNSUPPORTED_SAMPLERS]:
        raise Refused(f"general.sampling.sequence names the unsupported sampler '{unsupported[0]}'")
    return params


def _cut(text: str, most: int) -> str:
    """The prefix of `text` that fits `most` bytes."""
    return text[:most].encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _leading_number(value: object, most: int, pattern: str) -> str | None:
    """The number at the beginning of `value` as llama.cpp prints it, `most` characters of it; None if there is
    none."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        text = f"{value:f}" if math.isfinite(value) else ""
    else:
        text = str(value) if isinstance(value, int | str) else ""
    found = re.match(pattern, text[:most], re.ASCII)
    return found[0] if found else None
