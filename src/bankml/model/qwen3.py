"""Qwen3: every head of Q and K is normed by itself, then turns by its position, first half against second."""

from bankml import _native
from bankml.model.config import ModelConfig
from bankml.model.decoder import Buffers, DecoderLayer


class Qwen3:
    def __init__(self, plan: ModelConfig, pool: _native.Pool) -> None:
        self._plan = plan
        self._pool = pool

    def place(self, layer: DecoderLayer, b: Buffers) -> None:
        heads, kv_heads, head_size = self._plan.heads, self._plan.kv_heads, self._plan.head_size
        eps = self._plan.rms_eps
        assert layer.q_norm is not None and layer.k_norm is not None  # the plan asks for both
        _native.rms_norm_heads(self._pool, b.qkv, layer.q_norm, eps, 0, heads)
        _native.rms_norm_heads(self._pool, b.qkv, layer.k_norm, eps, heads * head_size, kv_heads)
        _native.rope_rotate(self._pool, b.rope, True, heads + kv_heads, head_size, b.qkv)
