"""A sampler held to a grammar, as llama-server draws under one (common/sampling.cpp, common_sampler_sample)."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bankml.grammar.matcher import Matcher
from bankml.sampling.logprobs import TokenProbs


class DrawingChain(Protocol):
    """The chain below: sampling.chain.SamplerChain."""

    def accept_all(self, tokens: Sequence[int]) -> None: ...

    def accept(self, token: int) -> None: ...

    def sample(self, logits: NDArray[np.float32]) -> int: ...

    def probabilities(self, logits: NDArray[np.float32], token: int) -> TokenProbs | None: ...

    @property
    def seed(self) -> int | None: ...

    @property
    def settings(self) -> Mapping[str, object]: ...


class GrammarSampler:
    """DrawingChain without the grammar; when the token breaks it, masks the raw logits and draws again.

    The second draw comes from the same generators, so a seeded answer uses them up as llama-server's does. The prompt's
    tokens are the chain's alone; what the grammar is to have seen of them, its matcher accepts before.
    """

    def __init__(self, chain: DrawingChain, matcher: Matcher) -> None:
        self._chain = chain
        self._matcher = matcher
        self.resampled = 0
        """How many tokens were drawn again."""
        self.seconds = 0.0
        """What the grammar took: looking at tokens, masking, taking them in; not the chain's own time."""

    def accept_all(self, tokens: Sequence[int]) -> None:
        self._chain.accept_all(tokens)

    def accept(self, token: int) -> None:
        began = time.perf_counter()
        self._matcher.accept(token)
        self.seconds += time.perf_counter() - began
        self._chain.accept(token)

    def sample(self, logits: NDArray[np.float32]) -> int:
        token = self._chain.sample(logits)
        began = time.perf_counter()
        masked = None if self._matcher.allows(token) else self._matcher.mask(logits)
        self.seconds += time.perf_counter() - began
        if masked is None:
            return token
        self.resampled += 1
        return self._chain.sample(masked)

    def probabilities(self, logits: NDArray[np.float32], token: int) -> TokenProbs | None:
        return self._chain.probabilities(logits, token)

    @property
    def seed(self) -> int | None:
        return self._chain.seed

    @property
    def settings(self) -> Mapping[str, object]:
        return self._chain.settings
