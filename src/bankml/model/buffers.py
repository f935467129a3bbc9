"""The activations of one micro-batch."""

from dataclasses import dataclass

import numpy as np

from bankml.model.ops import Rows
from bankml.model.pages import zeros
from bankml.model.shape import ModelConfig


@dataclass(frozen=True)
class Buffers:
    """The activations of a micro-batch of n tokens, allocated once and overwritten: [n, …] float32."""

    x: Rows  # the residual stream, n_embd wide
    normed: Rows  # n_embd
    qkv: Rows  # Q's heads, K's heads, V's heads
    attended: Rows  # heads * head_size
    gate_up: Rows  # 2 * n_ff
    gated: Rows  # n_ff
    rope: Rows  # (cos, sin) pairs, head_size wide

    @classmethod
    def of(cls, config: ModelConfig, n: int) -> "Buffers":
        """Attention and feed-forward are never active at once, so the two share one piece of memory."""

        def rows(width: int, memory: Rows | None = None, start: int = 0) -> Rows:
            if memory is None:
                return zeros((n, width), np.float32)
            return memory[start * n : (start + width) * n].reshape(n, width)

        attended = config.heads * config.head_size
        shared: Rows = zeros((n * max(config.qkv_width + attended, 3 * config.n_ff),), np.float32)
        return cls(
            x=rows(config.n_embd),
            normed=rows(config.n_embd),
            qkv=rows(config.qkv_width, shared),
            attended=rows(attended, shared, config.qkv_width),
            gate_up=rows(2 * config.n_ff, shared),
            gated=rows(config.n_ff, shared, 2 * config.n_ff),
            rope=rows(config.head_size),
        )

    def first(self, n: int) -> "Buffers":
        return Buffers(*(buffer[:n] for buffer in vars(self).values()))

    def last(self, n: int) -> "Buffers":
        """Row n - 1 of every buffer."""
        return Buffers(*(buffer[n - 1 : n] for buffer in vars(self).values()))
