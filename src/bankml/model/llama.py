"""Llama: Q and K turn by their position, adjacent values in pairs."""

from bankml import _native
from bankml.model.config import ModelConfig
from bankml.model.decoder import Buffers, DecoderLayer


class Llama:
    def __init__(self, plan: ModelConfig, pool: _native.Pool) -> None:
        self._pool = pool
        self._turned_heads = plan.heads + plan.kv_heads
        self._head_size = plan.head_size

    def place(self, layer: DecoderLayer, b: Buffers) -> None:
        _native.rope_rotate(self._pool, b.rope, False, self._turned_heads, self._head_size, b.qkv)
