"""Random logits and parameters, with what makes samplers differ: ties, values at the limits, odd orders, tiny lists."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bankml.sampling.numbers import float32
from bankml.sampling.parameters import DEFAULT_SAMPLERS, SamplingParams


@dataclass(frozen=True)
class Case:
    params: SamplingParams
    history: tuple[int, ...]  # accepted before the first draw
    breakers: tuple[tuple[int, ...], ...]  # DRY's, as tokens
    draws: int


# Each sampler alone: the parameters that turn it on, by a function of a random generator.
ALONE = {
    "penalties": lambda r: {
        "repeat_last_n": int(r.choice([1, 2, 8, 64, 1000])),
        "repeat_penalty": _f(r.choice([1.0, 0.7, 1.1, 1.5, 3.0])),
        "frequency_penalty": _f(r.choice([0.0, 0.3, -0.7, 2.0])),
        "presence_penalty": _f(r.choice([0.0, 0.4, -0.5])),
    },
    "dry": lambda r: {
        "dry_multiplier": _f(r.choice([0.3, 0.8, 2.0, -1.0])),
        "dry_base": _f(r.choice([1.0, 1.0000005, 1.5, 1.75, 40.0])),
        "dry_allowed_length": int(r.choice([0, 1, 2, 3, 7])),
        "dry_penalty_last_n": int(r.choice([1, 5, 64, 1000])),
    },
    "top_n_sigma": lambda r: {"top_n_sigma": _f(r.choice([0.1, 1.0, 1.7, 5.0]))},
    "top_k": lambda r: {"top_k": int(r.choice([1, 2, 3, 40, 127, 128, 129, 300, 2000, 10**6]))},
    "typ_p": lambda r: {"typical_p": _f(r.choice([0.01, 0.3, 0.6, 0.95, 0.999999])), "min_keep": _keep(r)},
    "top_p": lambda r: {"top_p": _f(r.choice([0.0, 0.1, 0.5, 0.9, 0.95, 0.999999])), "min_keep": _keep(r)},
    "min_p": lambda r: {"min_p": _f(r.choice([1e-30, 0.01, 0.05, 0.3, 1.0])), "min_keep": _keep(r)},
    "xtc": lambda r: {
        "xtc_probability": _f(r.choice([0.2, 0.6, 1.0])),
        "xtc_threshold": _f(r.choice([0.0, 0.01, 0.1, 0.4, 0.5])),
        "min_keep": _keep(r),
    },
    "temperature": lambda r: {
        "temperature": _f(r.choice([0.0, -1.0, 1e-6, 0.3, 0.8, 1.0, 1.7, 30.0])),
        "dynatemp_range": _f(r.choice([0.0, 0.0, 0.2, 0.9, 5.0, -1.0])),
        "dynatemp_exponent": _f(r.choice([1.0, 0.5, 1.3, 3.0])),
    },
    "adaptive_p": lambda r: {
        "adaptive_target": _f(r.choice([-1.0, 0.0, 0.3, 0.7, 1.0])),
        "adaptive_decay": _f(r.choice([0.0, 0.5, 0.9, 0.99])),
    },
    "mirostat": lambda r: {
        "mirostat": 1,
        "mirostat_tau": _f(r.choice([0.5, 3.0, 5.0, 9.0])),
        "mirostat_eta": _f(r.choice([0.0, 0.1, 0.7])),
        "temperature": _f(r.choice([0.0, 0.8, 1.0, 2.0])),
    },
    "mirostat_v2": lambda r: {
        "mirostat": 2,
        "mirostat_tau": _f(r.choice([0.0, 0.5, 3.0, 5.0, 9.0])),
        "mirostat_eta": _f(r.choice([0.0, 0.1, 0.7])),
        "temperature": _f(r.choice([0.0, 0.8, 1.0, 2.0])),
    },
    "logit_bias": lambda r: {},
    "dist": lambda r: {},
}

# No sampler does anything: what ALONE starts from.
OFF = SamplingParams(seed=1, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, samplers=())


def _f(value: Any) -> float:
    return float32(float(value))


def _keep(r: np.random.Generator) -> int:
    return int(r.choice([0, 0, 1, 3, 50]))


def logits(r: np.random.Generator, n: int) -> np.ndarray:
    """float32 [n]: smooth, or in few steps so that many tie, or all equal; some of them -inf."""
    width = r.choice([0.01, 1.0, 4.0, 30.0])
    row = r.normal(r.choice([0.0, -5.0, 8.0]), width, n)
    match r.integers(5):
        case 0:
            row = np.round(row)
        case 1:
            row = np.round(row / width) * width
        case 2:
            row[:] = row[0] if r.integers(2) else np.abs(np.round(row))
    if r.integers(4) == 0:
        row[r.random(n) < r.choice([0.1, 0.9])] = -np.inf
    return row.astype(np.float32)


def biases(r: np.random.Generator, n: int) -> tuple[tuple[int, float], ...]:
    values = [float32(5.0), float32(-3.3), float32(0.1), float("-inf")]
    return tuple((int(r.integers(n)), values[r.integers(4)]) for _ in range(r.integers(1, 6)))


def alone(name: str, r: np.random.Generator, n: int) -> Case:
    """Sampler `name` and no other but the one that chooses."""
    changes = dict(ALONE[name](r))
    if name in (*DEFAULT_SAMPLERS, "adaptive_p"):
        changes["samplers"] = (name,)
    if name == "logit_bias":
        changes["logit_bias"] = biases(r, n)
    return _case(replace(OFF, **changes), r, n)


def combined(r: np.random.Generator, n: int) -> Case:
    """Several samplers in the default order or any other, some more than once."""
    changes: dict[str, Any] = {}
    for name in DEFAULT_SAMPLERS:
        if r.integers(2):
            changes |= ALONE[name](r)
    if r.integers(3) == 0:
        changes |= {"logit_bias": biases(r, n)}
    match r.integers(6):
        case 0:
            changes |= ALONE[str(r.choice(["mirostat", "mirostat_v2"]))](r)
        case 1:
            changes |= ALONE["adaptive_p"](r)
            changes["samplers"] = (*DEFAULT_SAMPLERS[: r.integers(9)], "adaptive_p")
        case 2 | 3:
            changes["samplers"] = tuple(str(s) for s in r.choice(DEFAULT_SAMPLERS, r.integers(12)))
    return _case(replace(SamplingParams(), **changes), r, n)


def _case(params: SamplingParams, r: np.random.Generator, n: int) -> Case:
    some = min(n, int(r.choice([2, 3, 10, 1000])))
    history = tuple(int(t) for t in r.integers(some, size=int(r.choice([0, 1, 5, 30, 200]))))
    breakers = tuple(tuple(int(t) for t in r.integers(some, size=r.integers(1, 4))) for _ in range(r.integers(4)))
    return Case(replace(params, seed=int(r.integers(2**32 - 1))), history, breakers, draws=int(r.integers(1, 4)))
