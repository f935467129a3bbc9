"""How likely each token of a prompt was, for requests that want their prompt's probabilities (`echo`)."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from bankml.engine.completion import MICRO_BATCH, Compute, Event
from bankml.engine.parts import Logits, TokenSampler
from bankml.engine.slot import Slot
from bankml.model.span import Span
from bankml.sampling.logprobs import TokenProbs


@dataclass(frozen=True)
class PromptScores:
    """What is reported of each token of a prompt. `traced`: nothing that was computed before decided their bits."""

    probs: Sequence[TokenProbs]
    traced: bool


def prompt_scores(
    prompt: Sequence[int], slot: Slot, sampler: TokenSampler
) -> Generator[Event, Logits | None, PromptScores]:
    """What `sampler` reports of each token: the first, which follows nothing, has no probability.

    All of the prompt is computed, whatever is cached, in micro-batches, and every row of them gives logits. The slot
    has the prompt afterwards, so that an answer continues from it.
    """
    slot.begin(prompt, False)
    traced = slot.traced
    found = [TokenProbs(prompt[0], None, ())]

    def score(position: int, logits: Logits) -> None:
        """`logits` [rows, n_vocab] are of the tokens from `position` on, and say how likely the next ones were."""
        for token, row in zip(prompt[position + 1 :], logits, strict=False):
            probs = sampler.probabilities(row, token)
            assert probs is not None  # the request asks for them
            found.append(probs)

    while len(slot) < len(prompt):
        batch = list(prompt[len(slot) : len(slot) + MICRO_BATCH])
        yield Compute(Span(batch, len(slot), slot.cells), logits=False, rows=score)
        slot.extend(batch)
    return PromptScores(found, traced)
