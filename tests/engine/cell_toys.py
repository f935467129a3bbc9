"""A toy model that answers from what its cells hold, so that a wrong cell is a wrong answer."""

from types import SimpleNamespace

import numpy as np

from bankml.model.kv_cache import KVCells
from tests.engine.engine_toys import N_VOCAB, hashing


class CellModel:
    """Keeps each token in its own cell of K, and its position in V; [1 layer][1 head][cells][width]."""

    def __init__(self, next_token=hashing, n_ctx=4096, width=1):
        self.n_ctx, self.next_token = n_ctx, next_token
        self.k = np.full((1, 1, n_ctx, width), -1, np.int32)
        self.v = np.full((1, 1, n_ctx, width), -1, np.int32)
        self.logits = np.full(N_VOCAB, np.nan, np.float32)
        self.cell_bytes = 2 * 4 * width
        self.cache_type = "f16"
        self.saved = []

    def held(self, n):
        """The tokens in the first `n` cells, which must be where they were computed."""
        assert np.array_equal(self.v[0, 0, :n, 0], np.arange(n))
        return tuple(self.k[0, 0, :n, 0].tolist())

    def forward(self, tokens, position, logits, checkpoint=lambda: None):
        end = position + len(tokens)
        assert 1 <= len(tokens) <= 512 and end <= self.n_ctx
        self.k[0, 0, position:end] = np.array(tokens)[:, None]
        self.v[0, 0, position:end] = np.arange(position, end)[:, None]
        self.logits[:] = 0 if logits else np.nan
        if logits:
            self.logits[self.next_token(self.held(end))] = 1

    def view(self, n):
        return KVCells(self.k[:, :, :n], self.v[:, :, :n])

    def save(self, n):
        self.saved.append(n)
        return KVCells(self.k[:, :, :n].copy(), self.v[:, :, :n].copy())

    def load(self, state, n):
        self.k[:, :, :n], self.v[:, :, :n] = state.k[:, :, :n], state.v[:, :, :n]


def filled(model, tokens):
    """The slot of `model` after it computed `tokens`."""
    from bankml.engine.slot import Slot

    slot = Slot()
    for at in range(0, len(tokens), 512):
        model.forward(tokens[at : at + 512], at, True)
    slot.extend(tokens)
    return slot


def entry(tokens, nbytes=0):
    """What PromptCache sees of an entry."""
    from bankml.engine.prompt_cache import TOKEN_BYTES, CachedPrompt

    tokens = np.array(list(tokens), np.int32)
    return CachedPrompt(tokens, SimpleNamespace(nbytes=nbytes - TOKEN_BYTES * len(tokens)))
