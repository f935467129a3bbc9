"""The sampler chain of one generation: the samplers that SamplingParams lists, in order, in native code."""

import math
import secrets
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from bankml import _native
from bankml.errors import BankmlError, RequestError
from bankml.sampling.logprobs import TokenProbs, chain_probs, token_probs
from bankml.sampling.parameters import RANDOM_SEED, SamplingParams, as_fields
from bankml.sampling.vocabulary import SamplerVocabulary


class SamplerChain:
    """Samples tokens from logits. Serves one generation, on one thread at a time.

    Every token of the prompt is accepted before the first is sampled, and every sampled token after it.

    A grammar first samples without constraint; if the token breaks it, it calls `sample` again with a copy of the
    logits in which forbidden tokens are -inf: a second draw from the same generators.
    """

    def __init__(self, params: SamplingParams, vocabulary: SamplerVocabulary) -> None:
        self.params = params
        # Not RANDOM_SEED itself, which could not be reproduced.
        self.seed = params.seed if params.seed != RANDOM_SEED else secrets.randbelow(RANDOM_SEED)
        self._n_vocab = vocabulary.n_vocab
        self._chain = _build(params, vocabulary, self.seed)

    def accept(self, token: int) -> None:
        """`token` is now part of the text."""
        self._chain.accept(token)

    def accept_all(self, tokens: Iterable[int]) -> None:
        """The tokens of the prompt, first to last."""
        self._chain.accept_all(list(tokens))

    def sample(self, logits: NDArray[np.float32]) -> int:
        """Samples a token from `logits`, float32 [n_vocab], which are not modified. Accepts nothing.

        Raises RequestError if the request's parameters make a logit NaN, BankmlError if the model did.
        """
        if logits.shape != (self._n_vocab,):
            raise BankmlError(f"expected logits of shape ({self._n_vocab},), got {logits.shape}")
        try:
            return self._chain.sample(logits)
        except ValueError as error:
            raise RequestError(f"{error} left a logit that is not a number: use smaller values") from None
        except RuntimeError as error:
            raise BankmlError(str(error)) from None

    def probabilities(self, logits: NDArray[np.float32], token: int) -> TokenProbs | None:
        """What to report with `token`, the last one sampled, from `logits`; None if nothing was requested."""
        if not self.params.n_probs:
            return None
        if self.params.post_sampling_probs:
            return chain_probs(self._chain, token, self.params.n_probs)
        return token_probs(logits, token, min(self.params.n_probs, self._n_vocab))

    @property
    def settings(self) -> dict[str, object]:
        """The parameters as a request's fields."""
        return as_fields(self.params)

    @property
    def native(self) -> _native.SamplerChain:
        return self._chain


def _build(params: SamplingParams, vocabulary: SamplerVocabulary, seed: int) -> _native.SamplerChain:
    chain = _native.SamplerChain()
    biases = [*params.logit_bias, *((t, -math.inf) for t in params.suppressed if 0 <= t < vocabulary.n_vocab)]
    if biases:
        chain.add_logit_bias(biases)
    if params.mirostat:
        if params.temperature != 1.0:
            chain.add_temperature(params.temperature)
        if params.mirostat == 1:
            chain.add_mirostat(vocabulary.n_vocab, seed, params.mirostat_tau, params.mirostat_eta)
        else:
            chain.add_mirostat_v2(seed, params.mirostat_tau, params.mirostat_eta)
        return chain
    for name in params.samplers:
        _ADD[name](chain, params, vocabulary, seed)
    # The final choice comes last, wherever adaptive_p is listed.
    if "adaptive_p" in params.samplers:
        chain.add_adaptive_p(params.adaptive_target, params.adaptive_decay, seed)
    else:
        chain.add_dist(seed)
    return chain


# Each adds its sampler, unless the parameters turn it off: then the candidates are untouched, including their order.


def _penalties(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.repeat_last_n > 0 and (p.repeat_penalty, p.frequency_penalty, p.presence_penalty) != (1.0, 0.0, 0.0):
        chain.add_penalties(p.repeat_last_n, p.repeat_penalty, p.frequency_penalty, p.presence_penalty)


def _dry(chain: _native.SamplerChain, p: SamplingParams, vocabulary: SamplerVocabulary, seed: int) -> None:
    if p.dry_multiplier != 0.0 and p.dry_base >= 1.0 and p.dry_penalty_last_n > 0:
        breakers = vocabulary.breakers(p.dry_sequence_breakers)
        chain.add_dry(p.dry_multiplier, p.dry_base, p.dry_allowed_length, p.dry_penalty_last_n, breakers)


def _top_n_sigma(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.top_n_sigma > 0.0:
        chain.add_top_n_sigma(p.top_n_sigma)


def _top_k(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.top_k > 0:
        chain.add_top_k(p.top_k)


def _typ_p(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.typical_p < 1.0:
        chain.add_typical_p(p.typical_p, p.min_keep)


def _top_p(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.top_p < 1.0:
        chain.add_top_p(p.top_p, p.min_keep)


def _min_p(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.min_p > 0.0:
        chain.add_min_p(p.min_p, p.min_keep)


def _xtc(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.xtc_probability > 0.0 and p.xtc_threshold <= 0.5:
        chain.add_xtc(p.xtc_probability, p.xtc_threshold, p.min_keep, seed)


def _temperature(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    if p.dynatemp_range > 0.0:
        chain.add_dynamic_temperature(p.temperature, p.dynatemp_range, p.dynatemp_exponent)
    elif p.temperature != 1.0:
        chain.add_temperature(p.temperature)


def _adaptive_p(chain: _native.SamplerChain, p: SamplingParams, _: SamplerVocabulary, seed: int) -> None:
    """Makes the final choice, so it is added last."""


_ADD: dict[str, Callable[[_native.SamplerChain, SamplingParams, SamplerVocabulary, int], None]] = {
    "penalties": _penalties,
    "dry": _dry,
    "top_n_sigma": _top_n_sigma,
    "top_k": _top_k,
    "typ_p": _typ_p,
    "top_p": _top_p,
    "min_p": _min_p,
    "xtc": _xtc,
    "temperature": _temperature,
    "adaptive_p": _adaptive_p,
}
