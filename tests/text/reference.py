"""The reference's own tokenizer, through ctypes: for tests marked `oracle` and for making recordings."""

import ctypes
from pathlib import Path

from tests import oracle


class ModelParams(ctypes.Structure):
    _fields_ = (
        ("devices", ctypes.c_void_p),
        ("buffer_types", ctypes.c_void_p),
        ("n_gpu_layers", ctypes.c_int32),
        ("split_mode", ctypes.c_int),
        ("load_mode", ctypes.c_int),
        ("lazy_mode", ctypes.c_int),
        ("main_gpu", ctypes.c_int32),
        ("tensor_split", ctypes.c_void_p),
        ("progress", ctypes.c_void_p),
        ("progress_data", ctypes.c_void_p),
        ("overrides", ctypes.c_void_p),
        ("vocab_only", ctypes.c_bool),
        ("flags", ctypes.c_bool * 5),
    )


class ReferenceTokenizer:
    """`llama_tokenize` and its companions on the vocabulary of a GGUF file."""

    def __init__(self, path: Path | str) -> None:
        self._lib = lib = ctypes.CDLL(str(oracle.find("libllama.so")))
        quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        self._quiet = quiet(lambda level, text, data: None)
        lib.llama_log_set(self._quiet, None)
        lib.llama_model_default_params.restype = ModelParams
        lib.llama_model_load_from_file.restype = ctypes.c_void_p
        lib.llama_model_load_from_file.argtypes = (ctypes.c_char_p, ModelParams)
        lib.llama_model_get_vocab.restype = ctypes.c_void_p
        lib.llama_model_get_vocab.argtypes = (ctypes.c_void_p,)
        lib.llama_tokenize.argtypes = (
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int32,
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.c_bool,
            ctypes.c_bool,
        )
        lib.llama_token_to_piece.argtypes = (
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.c_char_p,
            ctypes.c_int32,
            ctypes.c_int32,
            ctypes.c_bool,
        )
        lib.llama_vocab_is_eog.argtypes = (ctypes.c_void_p, ctypes.c_int32)
        lib.llama_vocab_is_eog.restype = ctypes.c_bool
        lib.llama_vocab_n_tokens.argtypes = (ctypes.c_void_p,)
        lib.llama_backend_init()
        params = lib.llama_model_default_params()
        params.vocab_only = True
        model = lib.llama_model_load_from_file(str(path).encode(), params)
        assert model, f"the reference does not load {path}"
        self._vocab = lib.llama_model_get_vocab(model)
        self._buffer = (ctypes.c_int32 * 65536)()

    @property
    def n_vocab(self) -> int:
        return int(self._lib.llama_vocab_n_tokens(self._vocab))

    def encode(self, text: bytes, parse_special: bool) -> list[int]:
        size = len(self._buffer)
        n = self._lib.llama_tokenize(self._vocab, text, len(text), self._buffer, size, False, parse_special)
        assert n >= 0
        return self._buffer[:n]

    def piece(self, token: int, special: bool) -> bytes:
        buffer = ctypes.create_string_buffer(4096)
        n = self._lib.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, special)
        assert n >= 0
        return buffer.raw[:n]

    def is_end_of_generation(self, token: int) -> bool:
        return bool(self._lib.llama_vocab_is_eog(self._vocab, token))
