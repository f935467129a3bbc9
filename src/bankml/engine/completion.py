"""The order of one answer: slot, prompt, sampler, text, and the stop conditions. What has to be computed is yielded."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bankml.engine.checkpoints import PromptLayout
from bankml.engine.parts import Logits, ScoredRows, TextPieces, TokenPieces, TokenSampler
from bankml.engine.slot import Slot
from bankml.engine.trace import ComputedSpan
from bankml.errors import ContextExceeded, RequestError
from bankml.model.span import Span
from bankml.sampling.logprobs import TokenProbs

MICRO_BATCH = 512
"""Tokens of one forward pass at most; fixed, because the attention kernels' bits depend on it."""

UNLIMITED = -1

NO_TOKEN = -1
"""The token of the one Step of an answer for which none is drawn."""

Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class Job:
    """A prompt to complete. `max_tokens` is UNLIMITED or a count; 0 gives one token, as in llama-server. `preserved`
    are control tokens that have their text in the answer. `slot` is the number of the slot to use; None: any.
    `user_starts` are the positions in the prompt at which user messages begin, where a sliding window needs them."""

    prompt: Sequence[int]
    max_tokens: int = UNLIMITED
    cache_prompt: bool = True
    preserved: frozenset[int] = frozenset()
    slot: int | None = None
    user_starts: tuple[int, ...] = ()

    def most_cells(self, n_ctx: int) -> int:
        """The cells that the prompt and the longest answer take, at most `n_ctx`."""
        return n_ctx if self.max_tokens == UNLIMITED else min(n_ctx, len(self.prompt) + max(1, self.max_tokens))


@dataclass(frozen=True, slots=True)
class GenerationStats:
    """Counts so far, times (seconds of the clock), and the number of the slot: `started` is when computing the prompt
    began."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    started: float
    first_token: float
    last_token: float
    slot: int = 0

    @property
    def computed_tokens(self) -> int:
        """The prompt's tokens that were not in the cache."""
        return self.prompt_tokens - self.cached_tokens

    @property
    def prompt_ms(self) -> float:
        """From the start to the first token, which is sampled from the prompt's own logits."""
        return (self.first_token - self.started) * 1000

    @property
    def predicted_ms(self) -> float:
        """From the first token to the last."""
        return (self.last_token - self.first_token) * 1000

    @property
    def decode_steps(self) -> int:
        """The forward passes of `predicted_ms`: one fewer than the tokens, since the first came with the prompt."""
        return self.completion_tokens - 1


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How much of a prompt is computed: its tokens, of them the cached ones, and those that the cache holds now."""

    total: int
    cached: int
    processed: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class TokenReport:
    """What is reported with a token when probabilities are requested.

    `released` are the bytes of the text released since the previous entry, none while a stop string may be forming.
    They end with a complete character, but may contain invalid UTF-8.
    """

    probs: TokenProbs
    released: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """One token of the answer: the text it released (often none, or that of several); on the last, the reason.

    `entry` is set when probabilities are requested and the text so far does not end inside a character. Text withheld
    for a stop string is in it when an end-of-generation token releases it, not when a limit does. `trace`: how
    the cells of all tokens but this one were computed, None where that did not decide their bits alone.
    """

    token: int
    text: str
    finish: Finish | None
    progress: GenerationStats
    entry: TokenReport | None = None
    trace: tuple[ComputedSpan, ...] | None = None


def fits(n_prompt_tokens: int, n_ctx: int) -> None:
    """Raises ContextExceeded, in llama-server's words, unless the prompt leaves room for one token.

    An empty prompt gives no logits to sample from and is a RequestError.
    """
    if n_prompt_tokens == 0:
        raise RequestError("the prompt is empty: there is nothing to continue")
    if n_prompt_tokens >= n_ctx:
        sizes = f"request ({n_prompt_tokens} tokens) exceeds the available context size ({n_ctx} tokens)"
        raise ContextExceeded(f"{sizes}, try increasing it", n_prompt_tokens, n_ctx)


@dataclass(frozen=True, slots=True)
class Compute:
    """What has to be computed before the answer can go on; `logits`: the last token's logits are needed; `rows` gets
    those of every token; `embeds`: the vectors of the span's tokens are needed."""

    span: Span
    logits: bool
    rows: ScoredRows | None = None
    embeds: bool = False

    @property
    def decodes(self) -> bool:
        """It is one token, which is computed together with those of other answers."""
        return len(self.span.tokens) == 1 and self.rows is None and not self.embeds


Event = Compute | PromptProgress | Step

Events = Generator[Event, Logits | None, None]
"""The events of one answer. Each Compute is answered with logits, float32 [n_vocab], or None where none are needed."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A prompt whose cells are in a slot. `logits` float32 [n_vocab] of its last token; `cached` tokens were in the
    slot before; `started` (seconds of the clock) is when computing began."""

    logits: Logits
    cached: int
    started: float


def complete(
    job: Job,
    slot: Slot,
    n_ctx: int,
    vocabulary: TokenPieces,
    sampler: TokenSampler,
    pieces: TextPieces,
    clock: Callable[[], float] = time.monotonic,
) -> Events:
    """Yields the answer token by token, and before each token what has to be computed; the last Step has `finish`.

    However the generator ends, the slot lists exactly the tokens whose K/V cells are valid. Raises ContextExceeded
    before anything is computed.
    """
    prefilled = yield from prefill(job, slot, n_ctx, clock)
    yield from generate(job, slot, prefilled, n_ctx, vocabulary, sampler, pieces, clock)


def prefill(
    job: Job, slot: Slot, n_ctx: int, clock: Callable[[], float] = time.monotonic
) -> Generator[Event, Logits | None, Prefilled]:
    """Computes the part of the prompt that the slot lacks. A PromptProgress comes when it begins and after each
    micro-batch."""
    fits(len(job.prompt), n_ctx)
    started = clock()
    cached = slot.begin(job.prompt, job.cache_prompt)
    yield PromptProgress(len(job.prompt), cached, cached, slot.number)
    logits = None
    for compute in _prompt_batches(job, slot):
        logits = yield compute
        slot.extend(compute.span.tokens)
        yield PromptProgress(len(job.prompt), cached, len(slot), slot.number)
    assert logits is not None  # a slot never has the last token of a prompt
    return Prefilled(logits.copy(), cached, started)


def generate(
    job: Job,
    slot: Slot,
    prompt: Prefilled,
    n_ctx: int,
    vocabulary: TokenPieces,
    sampler: TokenSampler,
    pieces: TextPieces,
    clock: Callable[[], float] = time.monotonic,
) -> Events:
    """Yields the answer to a prompt that is in the slot."""
    sampler.accept_all(job.prompt)
    logits: Logits | None = prompt.logits
    count, first = 0, 0.0
    while True:
        assert logits is not None  # every Compute below asks for them
        token = sampler.sample(logits)
        sampler.accept(token)
        now = clock()
        count += 1
        first = first if count > 1 else now
        text = pieces.push(vocabulary.spelling(token) if token in job.preserved else vocabulary.piece(token))
        probs = sampler.probabilities(logits, token) if pieces.at_boundary else None
        released = pieces.released
        end = vocabulary.is_end_of_generation(token)
        full = len(slot) + 1 >= n_ctx
        spent = job.max_tokens != UNLIMITED and count >= job.max_tokens
        finish = _finish(end, full, pieces.stopped, spent)
        if finish is not None and not pieces.stopped:
            text += pieces.finish()
            released += pieces.released if end else b""
        entry = None if probs is None else TokenReport(probs, released)
        times = (prompt.started, first, now)
        stats = GenerationStats(len(job.prompt), prompt.cached, count, *times, slot.number)
        yield Step(token, text, finish, stats, entry, slot.trace.spans if slot.traced else None)
        if finish is not None:
            return
        logits = yield Compute(Span([token], len(slot), slot.cells), logits=True)
        slot.extend([token])


def _prompt_batches(job: Job, slot: Slot) -> Iterator[Compute]:
    """The micro-batches that the slot lacks of the prompt, each after the one before is in the slot."""
    prompt, windows = job.prompt, slot.windows
    layout, end = PromptLayout(len(prompt), job.user_starts), 0
    while len(slot) < len(prompt):
        if windows is None:
            end = len(prompt)
        elif len(slot) >= end:
            end = windows.batch_end(len(slot), layout)
            windows.before_batch(len(slot), end, layout)
        batch = list(prompt[len(slot) : min(len(slot) + MICRO_BATCH, end)])
        yield Compute(Span(batch, len(slot), slot.cells), logits=len(slot) + len(batch) == len(prompt))


def _finish(end: bool, full: bool, stopped: bool, spent: bool) -> Finish | None:
    """Whether and why the answer ends: end-of-generation token, full context, stop string, token limit.

    The order is llama-server's: a full context makes even a stop string found with it "length", an end-of-generation
    token takes precedence over both, and the token limit counts only when nothing else ended the answer.
    """
    if end:
        return "stop"
    if full:
        return "length"
    if stopped:
        return "stop"
    return "length" if spent else None
