"""libllama's own grammar sampler through ctypes, for the tests marked `oracle` and for benchmarks/grammar_masks.py."""

import time
from ctypes import POINTER, byref, c_char_p, c_void_p
from pathlib import Path

import numpy as np

from tests.sampling.reference import (
    TOKEN_DATA,
    ReferenceVocabulary,
    TokenData,
    TokenDataArray,
    load,
)

__all__ = ["ReferenceGrammars"]


class ReferenceGrammars:
    """A model's vocabulary in libllama, and grammars held against it."""

    def __init__(self, model: Path) -> None:
        self.lib = load()
        self.lib.llama_sampler_init_grammar.argtypes = [c_void_p, c_char_p, c_char_p]
        self.lib.llama_sampler_init_grammar.restype = c_void_p
        self._vocabulary = ReferenceVocabulary(self.lib, model)
        self.n_vocab = self._vocabulary.n_vocab

    def sampler(self, text: str) -> "ReferenceGrammar | None":
        """None for a text that libllama refuses."""
        made = self.lib.llama_sampler_init_grammar(self._vocabulary._vocab, text.encode(), b"root")
        return ReferenceGrammar(self, made) if made else None


class ReferenceGrammar:
    def __init__(self, grammars: ReferenceGrammars, sampler: int) -> None:
        self._grammars = grammars
        self._sampler = sampler
        self._data = np.zeros(grammars.n_vocab, dtype=TOKEN_DATA)
        self._data["id"] = np.arange(grammars.n_vocab)

    def __del__(self) -> None:
        self._grammars.lib.llama_sampler_free(self._sampler)

    def seconds(self, logits: np.ndarray) -> float:
        """The time of one apply."""
        self._data["logit"] = logits
        array = TokenDataArray(self._data.ctypes.data_as(POINTER(TokenData)), len(logits), -1, False)
        start = time.perf_counter()
        self._grammars.lib.llama_sampler_apply(self._sampler, byref(array))
        return time.perf_counter() - start

    def mask(self, logits: np.ndarray) -> np.ndarray:
        self.seconds(logits)
        return self._data["logit"].copy()

    def accept(self, token: int) -> None:
        """The process ends when the grammar has no way on with `token`."""
        self._grammars.lib.llama_sampler_accept(self._sampler, token)
