"""How likely each token of a prompt was, for requests that want their prompt's probabilities (`echo`)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bankml.engine.completion import MICRO_BATCH, Engine, fits
from bankml.engine.parts import TokenSampler
from bankml.engine.prompt_cache import swap_prefix
from bankml.errors import Cancelled
from bankml.sampling.logprobs import TokenProbs


def score_prompt(
    prompt: Sequence[int], engine: Engine, sampler: TokenSampler, *, cancelled: Callable[[], bool] = lambda: False
) -> list[TokenProbs]:
    """What `sampler` reports of each token: the first, which follows nothing, has no probability.

    All of the prompt is computed, whatever is cached, in micro-batches, and every row of them gives logits. The slot
    has the prompt afterwards, so that an answer continues from it. The caller holds the lock. Raises ContextExceeded
    before anything is computed, Cancelled when `cancelled` returns True.
    """
    model, slot = engine.model, engine.slot
    fits(len(prompt), model.n_ctx)
    if engine.prompt_cache is not None:
        swap_prefix(prompt, slot, model, engine.prompt_cache, False)
    slot.begin(prompt, False)
    found = [TokenProbs(prompt[0], None, ())]

    def checkpoint() -> None:
        if cancelled():
            raise Cancelled

    def score(position: int, logits: NDArray[np.float32]) -> None:
        """`logits` [rows, n_vocab] are of the tokens from `position` on, and say how likely the next ones were."""
        checkpoint()
        for token, row in zip(prompt[position + 1 :], logits, strict=False):
            probs = sampler.probabilities(row, token)
            assert probs is not None  # the request asks for them
            found.append(probs)

    while len(slot) < len(prompt):
        batch = list(prompt[len(slot) : len(slot) + MICRO_BATCH])
        model.score(batch, len(slot), score, checkpoint)
        slot.extend(batch)
    return found
