"""A grammar-constrained sampler, as in llama-server (common/sampling.cpp, common_sampler_sample)."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bankml.grammar.thought import ThoughtState, ThoughtTracker
from bankml.sampling.logprobs import TokenProbs


class DrawingChain(Protocol):
    """The unconstrained chain: sampling.chain.SamplerChain."""

    def accept_all(self, tokens: Sequence[int]) -> None: ...

    def accept(self, token: int) -> None: ...

    def sample(self, logits: NDArray[np.float32]) -> int: ...

    def probabilities(self, logits: NDArray[np.float32], token: int) -> TokenProbs | None: ...

    @property
    def seed(self) -> int | None: ...

    @property
    def settings(self) -> Mapping[str, object]: ...


class TokenMatcher(Protocol):
    """A grammar's state: grammar.matcher.Matcher, or grammar.lazy.LazyMatcher."""

    def allows(self, token: int) -> bool: ...

    def mask(self, logits: NDArray[np.float32]) -> NDArray[np.float32]: ...

    def accept(self, token: int) -> None: ...


class GrammarSampler:
    """Samples without the grammar; if the token breaks it, masks the raw logits and samples again.

    The second draw comes from the same generators, so a seeded answer uses them up as llama-server's does. The prompt's
    tokens are the chain's alone; what the grammar is to have seen of them, its matcher accepts before. `matcher` None:
    there is no grammar. With a `thought`, a grammar does not see the tokens of a thought where it is `lazy`, and a
    thought that is too long is ended.
    """

    def __init__(
        self,
        chain: DrawingChain,
        matcher: TokenMatcher | None,
        thought: ThoughtTracker | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        self._chain = chain
        self._matcher = matcher
        self._thought = thought
        self._lazy = lazy
        self.resampled = 0
        """How many tokens were resampled."""
        self.seconds = 0.0
        """Time spent on the grammar: checking tokens, masking, accepting; without the chain's own time."""

    def accept_all(self, tokens: Sequence[int]) -> None:
        self._chain.accept_all(tokens)

    def accept(self, token: int) -> None:
        began = time.perf_counter()
        matcher, thought, applies = self._matcher, self._thought, self._applies
        if thought is not None:
            thought.accept(token)
            if matcher is not None and not applies and thought.state is ThoughtState.ENDED:
                for one in thought.ended_with:  # what ends a thought may begin a call
                    matcher.accept(one)
        if matcher is not None and applies:
            matcher.accept(token)
        self.seconds += time.perf_counter() - began
        self._chain.accept(token)

    def sample(self, logits: NDArray[np.float32]) -> int:
        if self._thought is not None and (forced := self._thought.forced_token) is not None:
            logits = _only(logits, forced)
        token = self._chain.sample(logits)
        if self._matcher is None or not self._applies:
            return token
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
    def thought(self) -> ThoughtTracker | None:
        """What follows the answer's thoughts, where they are limited or may be ended."""
        return self._thought

    @property
    def _applies(self) -> bool:
        return not self._lazy or self._thought is None or self._thought.outside

    @property
    def seed(self) -> int | None:
        return self._chain.seed

    @property
    def settings(self) -> Mapping[str, object]:
        return self._chain.settings


def _only(logits: NDArray[np.float32], token: int) -> NDArray[np.float32]:
    """`logits` with all but one of them -inf."""
    out = np.full_like(logits, -np.inf)
    out[token] = logits[token]
    return out
