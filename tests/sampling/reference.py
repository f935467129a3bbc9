"""llama.cpp's own samplers through ctypes, for the tests marked `oracle` and for scripts/record_sampling.py."""

import ctypes
from collections.abc import Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_bool,
    c_char_p,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from dataclasses import replace
from pathlib import Path

import numpy as np

from bankml.sampling.parameters import SamplingParams
from tests import oracle

MIROSTAT_M = 100  # what llama-server gives mirostat


class TokenData(Structure):
    _fields_ = (("id", c_int32), ("logit", c_float), ("p", c_float))


class TokenDataArray(Structure):
    _fields_ = (("data", POINTER(TokenData)), ("size", c_size_t), ("selected", c_int64), ("sorted", c_bool))


class LogitBias(Structure):
    _fields_ = (("token", c_int32), ("bias", c_float))


class ChainParams(Structure):
    _fields_ = (("no_perf", c_bool),)


# numpy's view of TokenData
TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])

_INIT = {
    "dist": [c_uint32],
    "top_k": [c_int32],
    "top_p": [c_float, c_size_t],
    "min_p": [c_float, c_size_t],
    "typical": [c_float, c_size_t],
    "temp": [c_float],
    "temp_ext": [c_float, c_float, c_float],
    "xtc": [c_float, c_float, c_size_t, c_uint32],
    "top_n_sigma": [c_float],
    "mirostat": [c_int32, c_uint32, c_float, c_float, c_int32],
    "mirostat_v2": [c_uint32, c_float, c_float],
    "penalties": [c_int32, c_int32, c_float, c_float, c_float],
    "adaptive_p": [c_float, c_float, c_uint32],
    "logit_bias": [c_int32, c_int32, POINTER(LogitBias)],
}


def load() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(oracle.find("libllama.so")))
    lib.llama_sampler_chain_init.argtypes = [ChainParams]
    lib.llama_sampler_chain_init.restype = c_void_p
    lib.llama_sampler_chain_add.argtypes = [c_void_p, c_void_p]
    lib.llama_sampler_apply.argtypes = [c_void_p, POINTER(TokenDataArray)]
    lib.llama_sampler_accept.argtypes = [c_void_p, c_int32]
    lib.llama_sampler_free.argtypes = [c_void_p]
    for name, arguments in _INIT.items():
        function = getattr(lib, f"llama_sampler_init_{name}")
        function.argtypes = arguments
        function.restype = c_void_p
    return lib


class Vector(Structure):
    """libstdc++'s std::vector: three pointers."""

    _fields_ = (("begin", c_void_p), ("end", c_void_p), ("capacity", c_void_p))


def _dry(lib: ctypes.CDLL, p: SamplingParams, breakers: Sequence[tuple[int, ...]]) -> int:
    """DRY with breakers given as tokens: the entry llama.cpp keeps for its own tests."""
    symbol = "_Z30llama_sampler_init_dry_testingffiiRKSt6vectorIS_IiSaIiEESaIS1_EE"
    make = CFUNCTYPE(c_void_p, c_float, c_float, c_int32, c_int32, POINTER(Vector))((symbol, lib))
    rows = [(c_int32 * len(b))(*b) for b in breakers]
    vectors = (Vector * max(1, len(rows)))()
    for vector, row in zip(vectors, rows, strict=False):
        start = ctypes.addressof(row)
        vector.begin, vector.end, vector.capacity = start, start + ctypes.sizeof(row), start + ctypes.sizeof(row)
    start, end = ctypes.addressof(vectors), ctypes.addressof(vectors) + len(rows) * ctypes.sizeof(Vector)
    return make(
        p.dry_multiplier, p.dry_base, p.dry_allowed_length, p.dry_penalty_last_n, byref(Vector(start, end, end))
    )


class ModelParams(Structure):
    """llama_model_params of b11192, as far as a vocabulary needs it."""

    _fields_ = (
        ("pointers_a", c_void_p * 2),
        ("numbers", c_int32 * 5),
        ("pointers_b", c_void_p * 4),
        ("vocab_only", c_bool),
        ("flags", c_bool * 5),
    )


class ReferenceVocabulary:
    """The vocabulary of a GGUF file as llama.cpp loads it."""

    def __init__(self, lib: ctypes.CDLL, path: Path) -> None:
        self._lib = lib
        lib.llama_model_default_params.restype = ModelParams
        lib.llama_model_load_from_file.argtypes = [c_char_p, ModelParams]
        lib.llama_model_load_from_file.restype = c_void_p
        lib.llama_model_get_vocab.argtypes = [c_void_p]
        lib.llama_model_get_vocab.restype = c_void_p
        lib.llama_vocab_n_tokens.argtypes = [c_void_p]
        lib.llama_tokenize.argtypes = [c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool]
        lib.llama_detokenize.argtypes = [c_void_p, POINTER(c_int32), c_int32, c_char_p, c_int32, c_bool, c_bool]
        lib.llama_sampler_init_dry.argtypes = [
            *(c_void_p, c_float, c_float, c_int32, c_int32),
            *(POINTER(c_char_p), c_size_t),
        ]
        lib.llama_sampler_init_dry.restype = c_void_p
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self._model = lib.llama_model_load_from_file(str(path).encode(), params)
        self._vocab = lib.llama_model_get_vocab(self._model)
        self.n_vocab = lib.llama_vocab_n_tokens(self._vocab)

    def tokenize(self, text: str) -> list[int]:
        data = text.encode()
        tokens = (c_int32 * max(1, len(data)))()
        n = self._lib.llama_tokenize(self._vocab, data, len(data), tokens, len(tokens), False, False)
        return list(tokens[:n])

    def text(self, token: int) -> bytes:
        text = ctypes.create_string_buffer(256)
        n = self._lib.llama_detokenize(self._vocab, (c_int32 * 1)(token), 1, text, len(text), False, True)
        return text.raw[:n]

    def dry(self, p: SamplingParams) -> "ReferenceSampler":
        """DRY alone, its breakers searched for in this vocabulary."""
        strings = [text.encode() for text in p.dry_sequence_breakers]
        step = self._lib.llama_sampler_init_dry(
            *(self._vocab, p.dry_multiplier, p.dry_base, p.dry_allowed_length, p.dry_penalty_last_n),
            *((c_char_p * len(strings))(*strings), len(strings)),
        )
        sampler = ReferenceSampler(self._lib, replace(p, samplers=()), self.n_vocab, chooses=False)
        sampler.add(step)
        return sampler


class ReferenceSampler:
    """The chain llama-server builds from `p`, with DRY's breakers given as token sequences."""

    def __init__(
        self,
        lib: ctypes.CDLL,
        p: SamplingParams,
        n_vocab: int,
        breakers: Sequence[tuple[int, ...]] = (),
        *,
        chooses: bool = True,
    ) -> None:
        self._lib = lib
        self._chain = lib.llama_sampler_chain_init(ChainParams(True))
        steps = []
        if p.logit_bias:
            biases = (LogitBias * len(p.logit_bias))(*p.logit_bias)
            steps.append(lib.llama_sampler_init_logit_bias(n_vocab, len(p.logit_bias), biases))
        if p.mirostat == 1:
            steps.append(lib.llama_sampler_init_temp(p.temperature))
            steps.append(lib.llama_sampler_init_mirostat(n_vocab, p.seed, p.mirostat_tau, p.mirostat_eta, MIROSTAT_M))
        elif p.mirostat == 2:
            steps.append(lib.llama_sampler_init_temp(p.temperature))
            steps.append(lib.llama_sampler_init_mirostat_v2(p.seed, p.mirostat_tau, p.mirostat_eta))
        else:
            make = {
                "penalties": lambda: lib.llama_sampler_init_penalties(
                    n_vocab, p.repeat_last_n, p.repeat_penalty, p.frequency_penalty, p.presence_penalty
                ),
                "dry": lambda: _dry(lib, p, breakers),
                "top_n_sigma": lambda: lib.llama_sampler_init_top_n_sigma(p.top_n_sigma),
                "top_k": lambda: lib.llama_sampler_init_top_k(p.top_k),
                "typ_p": lambda: lib.llama_sampler_init_typical(p.typical_p, p.min_keep),
                "top_p": lambda: lib.llama_sampler_init_top_p(p.top_p, p.min_keep),
                "min_p": lambda: lib.llama_sampler_init_min_p(p.min_p, p.min_keep),
                "xtc": lambda: lib.llama_sampler_init_xtc(p.xtc_probability, p.xtc_threshold, p.min_keep, p.seed),
                "temperature": lambda: lib.llama_sampler_init_temp_ext(
                    p.temperature, p.dynatemp_range, p.dynatemp_exponent
                ),
            }
            steps += [make[name]() for name in p.samplers if name != "adaptive_p" and not _off(name, p)]
            if chooses and "adaptive_p" in p.samplers:
                steps.append(lib.llama_sampler_init_adaptive_p(p.adaptive_target, p.adaptive_decay, p.seed))
            elif chooses:
                steps.append(lib.llama_sampler_init_dist(p.seed))
        for step in steps:
            self.add(step)

    def add(self, step: int) -> None:
        self._lib.llama_sampler_chain_add(self._chain, step)

    def __del__(self) -> None:
        self._lib.llama_sampler_free(self._chain)

    def accept(self, token: int) -> None:
        self._lib.llama_sampler_accept(self._chain, token)

    def apply(self, logits: np.ndarray) -> tuple[int, np.ndarray]:
        """(the token drawn or -1, what is left of the candidates: id, logit, p)."""
        data = np.zeros(len(logits), dtype=TOKEN_DATA)
        data["id"] = np.arange(len(logits))
        data["logit"] = logits
        array = TokenDataArray(data.ctypes.data_as(POINTER(TokenData)), len(logits), -1, False)
        self._lib.llama_sampler_apply(self._chain, byref(array))
        skipped = (ctypes.addressof(array.data.contents) - data.ctypes.data) // TOKEN_DATA.itemsize
        left = data[skipped : skipped + array.size].copy()
        return (int(left["id"][array.selected]) if array.selected >= 0 else -1), left


def _off(name: str, p: SamplingParams) -> bool:
    """The testing entry dereferences what an off DRY does not have."""
    return name == "dry" and (p.dry_multiplier == 0.0 or p.dry_base < 1.0 or p.dry_penalty_last_n == 0)
