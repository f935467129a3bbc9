"""A toy model that answers from what its cells hold, so that a wrong cell is a wrong answer."""

from types import SimpleNamespace

import numpy as np

from bankml.model.kv_cache import KVCells
from tests.engine.engine_toys import N_VOCAB, hashing


class Cells:
    """Each token in its own cell of K, and its position in V; [1 layer][1 head][cells][width]."""

    window = 0

    def __init__(self, n_ctx=4096, width=1):
        self.k = np.full((1, 1, n_ctx, width), -1, np.int32)
        self.v = np.full((1, 1, n_ctx, width), -1, np.int32)
        self.cell_bytes = 2 * 4 * width
        self.cache_type = "f16"
        self.saved = []

    def held(self, n):
        """The tokens in the first `n` cells, which must be where they were computed."""
        assert np.array_equal(self.v[0, 0, :n, 0], np.arange(n))
        return tuple(self.k[0, 0, :n, 0].tolist())

    def compute(self, tokens, position):
        end = position + len(tokens)
        self.k[0, 0, position:end] = np.array(tokens)[:, None]
        self.v[0, 0, position:end] = np.arange(position, end)[:, None]
        return self.held(end)

    def view(self, n):
        return KVCells(self.k[:, :, :n], self.v[:, :, :n])

    def save(self, n):
        self.saved.append(n)
        return KVCells(self.k[:, :, :n].copy(), self.v[:, :, :n].copy())

    def copy_from(self, other, n):
        self.load(other.view(n), n)

    def load(self, state, n):
        self.k[:, :, :n], self.v[:, :, :n] = state.k[:, :, :n], state.v[:, :, :n]

    def release(self, n):
        self.k[:, :, n:] = self.v[:, :, n:] = -1


class CellModel:
    """Answers from what is in the cells."""

    n_vocab = N_VOCAB

    def __init__(self, next_token=hashing, n_ctx=4096, width=1):
        self.n_ctx, self.next_token, self.width = n_ctx, next_token, width

    def new_cells(self):
        return Cells(self.n_ctx, self.width)

    def forward(self, spans, logits, checkpoint=lambda: None):
        found = np.zeros((len(spans), N_VOCAB), np.float32)
        for row, span in zip(found, spans, strict=True):
            assert 1 <= len(span.tokens) <= 512 and span.position + len(span.tokens) <= self.n_ctx
            row[self.next_token(span.cells.compute(span.tokens, span.position))] = 1
        return found if logits else None

    def close(self):
        pass


def filled(tokens, cells=None):
    """A slot after `tokens` were computed."""
    from bankml.engine.slot import Slot

    slot = Slot(Cells() if cells is None else cells)
    for at in range(0, len(tokens), 512):
        slot.cells.compute(tokens[at : at + 512], at)
    slot.extend(tokens)
    return slot


def entry(tokens, nbytes=0):
    """What PromptCache sees of an entry."""
    from bankml.engine.prompt_cache import TOKEN_BYTES, CachedPrompt

    tokens = np.array(list(tokens), np.int32)
    return CachedPrompt(tokens, SimpleNamespace(nbytes=nbytes - TOKEN_BYTES * len(tokens)), ())
