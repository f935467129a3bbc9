"""KV cells of earlier conversations, kept in memory so that their prefixes are found again.

The rules are those of llama-server's host prompt cache, whose counts a client sees as `cache_n`; its fractions are
32-bit floats, so these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bankml.engine.checkpoints import Checkpoint
from bankml.engine.slot import Slot, Tokens, common_prefix
from bankml.engine.trace import ComputedSpan, Trace

if TYPE_CHECKING:
    from bankml.model.kv_cache import KVCells

TOKEN_BYTES = np.dtype(np.int32).itemsize

MIN_PROMPT_OVERLAP = np.float32(0.1)
"""A prompt that shares at most this fraction of itself with the slot belongs to another conversation."""

MIN_SLOT_KEPT = np.float32(0.5)
"""A slot that would keep less than this fraction of itself is saved first."""

MIN_ENTRY_KEPT = np.float32(0.25)
"""An entry that would keep less than this fraction of itself stays in the cache."""


@dataclass(frozen=True)
class CachedPrompt:
    """The tokens of one conversation, with their keys and values and how those were computed."""

    tokens: Tokens
    state: KVCells
    trace: tuple[ComputedSpan, ...]
    in_order: int = 0
    checkpoints: tuple[Checkpoint, ...] = ()

    @property
    def nbytes(self) -> int:
        return entry_bytes(len(self.tokens), self.state.nbytes)


def entry_bytes(n_tokens: int, state_bytes: int) -> int:
    """Size of an entry: its tokens and its keys and values."""
    return n_tokens * TOKEN_BYTES + state_bytes


class PromptCache:
    """Entries in insertion order, within a limit of bytes and one of tokens.

    `limit_bytes` None: no limit of bytes. The limit of tokens grows to what fits the limit of bytes.
    """

    def __init__(self, limit_bytes: int | None, limit_tokens: int) -> None:
        self._limit_bytes = limit_bytes
        self._limit_tokens = limit_tokens
        self._entries: list[CachedPrompt] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        return sum(entry.nbytes for entry in self._entries)

    @property
    def n_tokens(self) -> int:
        return sum(len(entry.tokens) for entry in self._entries)

    @property
    def limit_bytes(self) -> int | None:
        return self._limit_bytes

    def admit(self, tokens: Tokens, nbytes: int) -> bool:
        """Whether to add an entry of `tokens` and `nbytes`; if so, the entries it replaces are dropped and it fits.

        Not if another entry contains it or it can never fit. It replaces the entries that it contains, and the oldest
        until it fits.
        """
        shared = [common_prefix(entry.tokens, tokens) for entry in self._entries]
        if len(tokens) in shared or (self._limit_bytes is not None and nbytes > self._limit_bytes):
            return False
        pairs = zip(self._entries, shared, strict=True)
        self._entries = [entry for entry, common in pairs if common < len(entry.tokens)]
        self._evict(nbytes)
        return True

    def add(self, entry: CachedPrompt) -> None:
        """Adds an admitted entry."""
        self._entries.append(entry)

    def take(self, current: Tokens, prompt: Tokens) -> CachedPrompt | None:
        """Removes and returns the entry that serves `prompt` better than the slot's tokens `current`, if there is one.

        Better means that a larger fraction of itself is kept and a larger fraction of the prompt is found; any entry
        is better than an empty slot.
        """
        common = common_prefix(current, prompt)
        kept = fraction(common, len(current)) if len(current) else np.float32(-1)
        found = fraction(common, len(prompt))
        best = None
        for entry in self._entries:
            common = common_prefix(entry.tokens, prompt)
            would_keep, would_find = fraction(common, len(entry.tokens)), fraction(common, len(prompt))
            if would_keep >= MIN_ENTRY_KEPT and would_keep > kept and would_find > found:
                kept, found, best = would_keep, would_find, entry
        if best is not None:
            self._entries = [entry for entry in self._entries if entry is not best]
        return best

    def trim(self) -> None:
        """Drops the oldest entries until both limits hold."""
        self._evict(0)
        limit = self._limit_tokens
        if self._limit_bytes is not None:
            bytes_a_token = max(1.0, self.nbytes / max(1, self.n_tokens))
            limit = max(limit, int(self._limit_bytes / bytes_a_token))
        while self._entries and self.n_tokens > limit:
            del self._entries[0]

    def clear(self) -> None:
        """Drops every entry."""
        self._entries.clear()

    def shrink(self) -> None:
        """After a failed allocation: limits the cache to two fifths of its current size."""
        self._limit_bytes = max(1, self.nbytes * 2 // 5)
        self.trim()

    def _evict(self, room: int) -> None:
        while self._limit_bytes is not None and self._entries and self.nbytes + room > self._limit_bytes:
            del self._entries[0]


def prompt_cache(limit_bytes: int | None, n_ctx: int) -> PromptCache | None:
    """None for a limit of 0; the limit of tokens is llama-server's, the context."""
    return None if limit_bytes == 0 else PromptCache(limit_bytes, limit_tokens=n_ctx)


def fraction(part: int, total: int) -> np.float32:
    return np.float32(part) / np.float32(max(1, total))


def can_extend(current: Tokens, prompt: Tokens) -> bool:
    """Whether `prompt` continues the slot's tokens and keeps most of them."""
    if not len(current):
        return False
    found = fraction(common_prefix(current, prompt), len(prompt))
    if not found > MIN_PROMPT_OVERLAP:
        return False
    return not found * np.float32(len(prompt)) / np.float32(len(current)) < MIN_SLOT_KEPT


def swap_prefix(prompt: Sequence[int], slot: Slot, cache: PromptCache, reuse: bool = True) -> None:
    """Before `prompt` is computed: saves what the slot would lose, and restores the cached prefix of its conversation.

    Only the cells of an entry's common prefix with `prompt` are copied; the rest would be dropped. Without `reuse` none
    are, but llama-server removes the entry all the same. Of a model with a sliding window all cells are, since what a
    window has lost decides how much is kept.
    """
    current, new = np.array(slot.tokens, np.int32), np.array(list(prompt), np.int32)
    if can_extend(current, new):
        return
    save(slot, cache)
    entry = cache.take(current, new)
    if entry is not None:
        common = common_prefix(entry.tokens, new) if reuse else 0
        if slot.windows is not None:
            common = len(entry.tokens)
            slot.windows.replace(entry.checkpoints)
        slot.clear()
        slot.cells.load(entry.state, common)
        slot.fill(entry.tokens[:common].tolist(), Trace(entry.trace).first(common), min(entry.in_order, common))
    cache.trim()


def save(slot: Slot, cache: PromptCache) -> None:
    """Copies what `slot` has into the cache, if it has anything that the cache lacks and there is room."""
    current = np.array(slot.tokens, np.int32)
    if not len(current):
        return
    if not cache.admit(current, entry_bytes(len(current), len(current) * slot.cells.cell_bytes)):
        return
    try:
        checkpoints = () if slot.windows is None else slot.windows.all
        cache.add(CachedPrompt(current, slot.cells.save(len(current)), slot.trace.spans, slot.in_order, checkpoints))
    except MemoryError:
        cache.shrink()
