"""The generation loop: slot, forward pass, sampler, text, and the stop conditions."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bankml import __version__
from bankml.engine.checkpoints import PromptLayout, WindowCheckpoints
from bankml.engine.parts import ForwardPass, TextPieces, TokenPieces, TokenSampler
from bankml.engine.prompt_cache import PromptCache, swap_prefix
from bankml.engine.slot import Slot
from bankml.errors import Cancelled, ContextExceeded, RequestError
from bankml.sampling.logprobs import TokenProbs

ENGINE = f"bankml-native {__version__}"
"""The engine's name, as receipts give it: the arithmetic is this project's own forward pass."""

MICRO_BATCH = 512
"""Tokens of one forward pass at most; fixed, because the attention kernels' bits depend on it."""

UNLIMITED = -1

Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class Engine:
    """A model, the tokens in its KV cache, and the pieces of its vocabulary. Used by one request at a time.

    `prompt_cache` keeps KV cells of earlier conversations; None: no prompt cache.
    """

    model: ForwardPass
    vocabulary: TokenPieces
    slot: Slot = field(default_factory=Slot)
    prompt_cache: PromptCache | None = None
    windows: WindowCheckpoints | None = None
    """The slot's checkpoints where the model has a sliding window."""
    restored: list[str] = field(default_factory=list)
    """The sha256 of every slot file that was restored: its keys and values may be in the slot or the prompt cache."""

    def close(self) -> None:
        """Frees the weights and every KV cell, the slot's and the prompt cache's."""
        self.slot.clear()
        if self.prompt_cache is not None:
            self.prompt_cache.clear()
        self.model.close()


@dataclass(frozen=True)
class Job:
    """A prompt to complete. `max_tokens` is UNLIMITED or a count; 0 gives one token, as in llama-server. `preserved`
    are control tokens that have their text in the answer; `user_starts` the positions where user messages begin."""

    prompt: Sequence[int]
    max_tokens: int = UNLIMITED
    cache_prompt: bool = True
    preserved: frozenset[int] = frozenset()
    user_starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationStats:
    """Counts so far, and times (seconds of the clock): `started` is when computing the prompt began."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    started: float
    first_token: float
    last_token: float

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
    for a stop string is in it when an end-of-generation token releases it, not when a limit does.
    """

    token: int
    text: str
    finish: Finish | None
    progress: GenerationStats
    entry: TokenReport | None = None


def fits(n_prompt_tokens: int, n_ctx: int) -> None:
    """Raises ContextExceeded, in llama-server's words, unless the prompt leaves room for one token.

    An empty prompt gives no logits to sample from and is a RequestError.
    """
    if n_prompt_tokens == 0:
        raise RequestError("the prompt is empty: there is nothing to continue")
    if n_prompt_tokens >= n_ctx:
        sizes = f"request ({n_prompt_tokens} tokens) exceeds the available context size ({n_ctx} tokens)"
        raise ContextExceeded(f"{sizes}, try increasing it", n_prompt_tokens, n_ctx)


def complete(
    job: Job,
    engine: Engine,
    sampler: TokenSampler,
    pieces: TextPieces,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[PromptProgress], None] = lambda progress: None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Step]:
    """Yields the answer token by token; the last Step has `finish`. The caller holds the lock throughout.

    `cancelled` is called between tokens and between layers of a prompt's micro-batch; Cancelled is raised when it
    returns True. `progress` is called when computing the prompt begins and after each micro-batch. However the
    computation ends, the slot lists exactly the tokens whose KV cells are valid. Raises ContextExceeded before
    anything is computed.
    """
    model, slot, vocabulary = engine.model, engine.slot, engine.vocabulary
    fits(len(job.prompt), model.n_ctx)
    if engine.prompt_cache is not None:
        swap_prefix(job.prompt, slot, model, engine.prompt_cache, job.cache_prompt, engine.windows)
    started = clock()
    sampler.accept_all(job.prompt)
    cached = slot.begin(job.prompt, job.cache_prompt, engine.windows)
    progress(PromptProgress(len(job.prompt), cached, cached))
    for processed in _compute_prompt(job, engine, cancelled):
        progress(PromptProgress(len(job.prompt), cached, processed))
    count, first = 0, 0.0
    while True:
        token = sampler.sample(model.logits)
        sampler.accept(token)
        now = clock()
        count += 1
        first = first if count > 1 else now
        text = pieces.push(vocabulary.spelling(token) if token in job.preserved else vocabulary.piece(token))
        probs = sampler.probabilities(model.logits, token) if pieces.at_boundary else None
        released = pieces.released
        end = vocabulary.is_end_of_generation(token)
        full = len(slot) + 1 >= model.n_ctx
        spent = job.max_tokens != UNLIMITED and count >= job.max_tokens
        finish = _finish(end, full, pieces.stopped, spent)
        if finish is not None and not pieces.stopped:
            text += pieces.finish()
            released += pieces.released if end else b""
        entry = None if probs is None else TokenReport(probs, released)
        yield Step(token, text, finish, GenerationStats(len(job.prompt), cached, count, started, first, now), entry)
        if finish is not None:
            return
        if cancelled():
            raise Cancelled
        model.forward([token], len(slot), logits=True)
        slot.extend([token])


def _compute_prompt(job: Job, engine: Engine, cancelled: Callable[[], bool]) -> Iterator[int]:
    """Yields after each micro-batch how many of the prompt's tokens the cache holds. A cancellation takes effect
    between two layers; the slot then has the tokens of the micro-batches before."""

    def checkpoint() -> None:
        if cancelled():
            raise Cancelled

    prompt, slot, windows = job.prompt, engine.slot, engine.windows
    layout, end = PromptLayout(len(prompt), job.user_starts), 0
    while len(slot) < len(prompt):
        checkpoint()
        if windows is None:
            end = len(prompt)
        elif len(slot) >= end:
            end = windows.batch_end(len(slot), layout)
            windows.before_batch(len(slot), end, layout)
        batch = list(prompt[len(slot) : min(len(slot) + MICRO_BATCH, end)])
        last = len(slot) + len(batch) == len(prompt)
        engine.model.forward(batch, len(slot), logits=last, checkpoint=checkpoint)
        slot.extend(batch)
        yield len(slot)


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
