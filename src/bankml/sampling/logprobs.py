"""The probabilities reported with a token, as numbers; api adds the text."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bankml import _native
from bankml.errors import BankmlError


@dataclass(frozen=True)
class TokenProbs:
    """One sampled token and the `n` likeliest.

    Each float is a 32-bit value, so that `json.dumps` and any reader give the same 32 bits back: the natural logarithm
    of the probability (the lowest float32 for a probability of 0), or the probability itself when `logarithmic` is
    false (`post_sampling_probs`). `value` is None for the first token of a prompt, which follows nothing.
    """

    token: int
    value: float | None
    top: tuple[tuple[int, float], ...]
    logarithmic: bool = True


def token_probs(logits: NDArray[np.float32], token: int, n_top: int) -> TokenProbs:
    """Log-probabilities from the raw logits, float32 [n_vocab], of which `n_top` are reported (at most n_vocab).

    The softmax is summed up in the order that a partial sort for the `n_top` highest leaves the vocabulary in.
    """
    try:
        chosen, ids, top = _native.token_probabilities(logits, token, n_top)
    except RuntimeError as error:
        raise BankmlError(str(error)) from None
    logs = _native.log_probabilities(top)
    value = _native.log_probabilities(np.array([chosen], dtype=np.float32))
    return TokenProbs(token, float(value[0]), tuple(zip(ids.tolist(), logs.tolist(), strict=True)))


def chain_probs(chain: _native.SamplerChain, token: int, n_top: int) -> TokenProbs:
    """The probabilities after the samplers of the last draw, at most `n_top` and none of 0 (`post_sampling_probs`)."""
    try:
        chosen, ids, top = chain.probabilities(token, n_top)
    except ValueError as error:
        raise BankmlError(f"{error} are not numbers") from None
    return TokenProbs(token, chosen, tuple(zip(ids.tolist(), top.tolist(), strict=True)), logarithmic=False)
