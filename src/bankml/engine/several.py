"""Several answers for one request: to several prompts, or to one prompt that is computed once for all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from bankml.engine.active import Ended
from bankml.engine.completion import Job, Prefilled, PromptProgress, Step, fits, generate, prefill
from bankml.engine.engine import Engine
from bankml.engine.outputs import Outputs
from bankml.engine.parts import TextPieces, TokenSampler
from bankml.engine.slot import Slot
from bankml.errors import Cancelled


@dataclass(frozen=True)
class PromptChoices:
    """A prompt and the answers to it: the sampler and the text pieces of each."""

    job: Job
    answers: Sequence[tuple[TokenSampler, TextPieces]]


@dataclass
class _Running:
    """A prompt that is being answered: its slots, the index of its first answer, and how many have not ended."""

    asked: PromptChoices
    slots: Sequence[Slot]
    first: int
    left: int
    held: ExitStack = field(default_factory=ExitStack)


class _Several:
    def __init__(
        self,
        engine: Engine,
        asked: Sequence[PromptChoices],
        width: int,
        outputs: Outputs,
        held: ExitStack,
        cancelled: Callable[[], bool],
    ) -> None:
        self._engine = engine
        self._free = width
        self._outputs = outputs
        self._held = held
        self._cancelled = cancelled
        self._waiting = deque(enumerate(asked))
        self._answers = 0
        self._running: dict[int, _Running] = {}
        self._of_answer: dict[int, int] = {}

    def start(self) -> None:
        """Starts the prompts for which there are slots and memory, in order. The tag of prompt i is -1 - i."""
        while self._waiting and len(self._waiting[0][1].answers) <= self._free:
            number, asked = self._waiting[0]
            job, count = asked.job, len(asked.answers)
            stack = self._held.enter_context(ExitStack())
            try:
                slots = stack.enter_context(self._reserved(job, count))
            except Cancelled:
                if not self._running:
                    raise
                return  # the memory is that of its other answers, whose tokens have to be taken first
            self._waiting.popleft()
            self._free -= count
            self._running[number] = _Running(asked, slots, self._answers, count, stack)
            self._answers += count
            self._outputs.begin({-1 - number: prefill(job, slots[0], self._engine.model.n_ctx)})

    def _reserved(self, job: Job, count: int) -> AbstractContextManager[Sequence[Slot]]:
        cancelled = (lambda: True) if self._running else self._cancelled
        return self._engine.slots.for_prompt(job, self._engine.model.n_ctx, cancelled, count - 1)

    def answer(self, number: int, prompt: Prefilled) -> None:
        """Starts the answers to prompt `number`, which is computed."""
        running, engine = self._running[number], self._engine
        for slot in running.slots[1:]:
            slot.copy_from(running.slots[0])
        works = {}
        for i, (slot, (sampler, pieces)) in enumerate(zip(running.slots, running.asked.answers, strict=True)):
            index = running.first + i
            self._of_answer[index] = number
            works[index] = generate(
                running.asked.job, slot, prompt, engine.model.n_ctx, engine.vocabulary, sampler, pieces
            )
        ordered = sorted(works, key=lambda index: running.slots[index - running.first].number)
        self._outputs.begin({index: works[index] for index in ordered})

    def ended(self, index: int) -> None:
        """Answer `index` is complete."""
        number = self._of_answer.pop(index)
        running = self._running[number]
        copy = index - running.first
        self._engine.slots.ended(running.slots[copy], copy > 0)
        running.left -= 1
        if not running.left:
            del self._running[number]
            self._free += len(running.slots)
            running.held.close()
            self.start()


def complete_several(
    engine: Engine,
    asked: Sequence[PromptChoices],
    width: int,
    *,
    cancelled: Callable[[], bool],
    progress: Callable[[PromptProgress], None],
) -> Generator[tuple[int, Step]]:
    """Yields the answers' tokens, each with the index of its answer: those of the first prompt, then those of the next.

    At most `width` answers are computed together, and no prompt may have more. Each answer has the tokens that it has
    alone. The order of tokens is that of their computation. Raises what Engine.complete raises; the other answers are
    cancelled then.
    """
    for one in asked:
        fits(len(one.job.prompt), engine.model.n_ctx)
    with ExitStack() as held, Outputs(engine.scheduler, cancelled) as outputs:
        several = _Several(engine, asked, width, outputs, held, cancelled)
        several.start()
        for tag, event in outputs.events():
            if isinstance(event, PromptProgress):
                progress(event)
            elif isinstance(event, Step):
                yield tag, event
            elif isinstance(event, Ended) and tag < 0:
                several.answer(-1 - tag, event.value)
            else:
                several.ended(tag)
