"""A model with its slots: answers are computed together, each as it would be alone."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from time import monotonic

from bankml import __version__
from bankml.engine.active import Ended
from bankml.engine.completion import Job, PromptProgress, Step, complete, fits
from bankml.engine.embedding import Embedding, embed, embeddable
from bankml.engine.outputs import Outputs
from bankml.engine.parts import ForwardPass, TextPieces, TokenPieces, TokenSampler
from bankml.engine.prompt_cache import PromptCache
from bankml.engine.prompt_scores import PromptScores, prompt_scores
from bankml.engine.scheduler import Scheduler
from bankml.engine.slot import Slot
from bankml.engine.slots import Slots

ENGINE = f"bankml-native {__version__}"
"""The engine's name, as receipts give it: the arithmetic is this project's own forward pass."""


def _never() -> bool:
    return False


def _ignore(progress: PromptProgress) -> None:
    pass


class Engine:
    """A model, the pieces of its vocabulary, and `parallel` slots, each for one answer at a time.

    `prompt_cache` keeps K/V cells of earlier conversations; None: no prompt cache. `restored` has the sha256 of every
    slot file that was restored: its keys and values may be in a slot or the prompt cache. `kv_limit` bytes are the most
    that the keys and values in the slots take; UsageError where that is less than one context.
    """

    def __init__(
        self,
        model: ForwardPass,
        vocabulary: TokenPieces,
        parallel: int = 1,
        prompt_cache: PromptCache | None = None,
        kv_limit: int | None = None,
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.slots = Slots([Slot(model.new_cells(), number) for number in range(parallel)], prompt_cache, kv_limit)
        self.slots.budget.require_room(self.slots[0], model.n_ctx)
        self.scheduler = Scheduler(model)
        self.restored: list[str] = []

    def complete(
        self,
        job: Job,
        sampler: TokenSampler,
        pieces: TextPieces,
        *,
        cancelled: Callable[[], bool] = _never,
        progress: Callable[[PromptProgress], None] = _ignore,
        clock: Callable[[], float] = monotonic,
    ) -> Generator[Step]:
        """Yields the answer token by token; the last Step has `finish`. May be called from several threads.

        `cancelled` is called before every token and between the operations of a prompt's micro-batch, by another
        thread; Cancelled is raised once it returns True. `progress` is called when computing the prompt begins and
        after each micro-batch. Raises ContextExceeded before anything is computed.
        """
        fits(len(job.prompt), self.model.n_ctx)
        with self.slots.for_prompt(job, self.model.n_ctx, cancelled) as (slot,):
            work = complete(job, slot, self.model.n_ctx, self.vocabulary, sampler, pieces, clock)
            with Outputs(self.scheduler, cancelled) as outputs:
                outputs.begin({0: work})
                for _, event in outputs.events():
                    if isinstance(event, PromptProgress):
                        progress(event)
                    elif isinstance(event, Step):
                        yield event

    def score(self, job: Job, sampler: TokenSampler, *, cancelled: Callable[[], bool] = _never) -> PromptScores:
        """What `sampler` reports of each token of the prompt (prompt_scores). Raises what `complete` raises."""
        fits(len(job.prompt), self.model.n_ctx)
        taken = self.slots.for_prompt(replace(job, max_tokens=0, cache_prompt=False), self.model.n_ctx, cancelled)
        with taken as (slot,), Outputs(self.scheduler, cancelled) as outputs:
            slot.clear()  # every row is needed, also of what a slot could have kept
            outputs.begin({0: prompt_scores(job.prompt, slot, sampler)})
            ended = [event for _, event in outputs.events() if isinstance(event, Ended)]
        scores: PromptScores = ended[0].value
        return scores

    def embed(self, tokens: Sequence[int], *, reuse: bool = True, cancelled: Callable[[], bool] = _never) -> Embedding:
        """The vectors of an input (embedding.embed). Raises what `embeddable` raises, and Cancelled.

        With several slots nothing cached is used, so that the bits do not depend on what else is computed; with one
        slot llama-server's rule holds, and theirs are the same, unless `reuse` is False.
        """
        embeddable(len(tokens), self.model)
        taken = self.slots.for_input(tokens, cancelled)
        with taken as slot, Outputs(self.scheduler, cancelled) as outputs:
            outputs.begin({0: embed(tokens, slot, self.model, reuse=reuse and len(self.slots) == 1)})
            ended = [event for _, event in outputs.events() if isinstance(event, Ended)]
        embedding: Embedding = ended[0].value
        return embedding

    @property
    def windowed(self) -> bool:
        """Whether the model has layers with a sliding window."""
        return self.slots[0].windows is not None

    def close(self) -> None:
        """Frees the weights and every K/V cell, in slots and in the prompt cache. No answer may be running."""
        self.scheduler.close()
        self.slots.close()
        self.model.close()
