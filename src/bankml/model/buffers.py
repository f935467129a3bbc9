"""The activations of one micro-batch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    router: Rows  # one value an expert
    temperature: npt.NDArray[np.float32]  # what a row's Q is multiplied by
    rope: tuple[Rows, ...]  # (cos, sin) pairs, as wide as what RoPE turns: a table for each RoPE of the model

    @classmethod
    def of(cls, config: ModelConfig, n: int) -> "Buffers":
        """Attention and feed-forward are never active at once, so the two share one piece of memory."""

        def rows(width: int, memory: Rows | None = None, start: int = 0) -> Rows:
            if memory is None:
                return zeros((n, width), np.float32)
            return memory[start * n : (start + width) * n].reshape(n, width)

        n_ff, experts = (config.n_ff, 0) if config.experts is None else (0, config.experts.count)
        shared: Rows = zeros((n * max(config.qkv_width + config.q_width, 3 * n_ff),), np.float32)
        return cls(
            x=rows(config.n_embd),
            normed=rows(config.n_embd),
            qkv=rows(config.qkv_width, shared),
            attended=rows(config.q_width, shared, config.qkv_width),
            gate_up=rows(2 * n_ff, shared),
            gated=rows(n_ff, shared, 2 * n_ff),
            router=rows(experts),
            temperature=np.ones(n, np.float32),
            rope=tuple(rows(config.rotated) for _ in range(1 if config.window is None else 2)),
        )

    def first(self, n: int) -> "Buffers":
        return self._rows(slice(n))

    def last(self, n: int) -> "Buffers":
        """Row n - 1 of every buffer."""
        return self._rows(slice(n - 1, n))

    def _rows(self, which: slice) -> "Buffers":
        def cut(buffer: Any) -> Any:
            return tuple(map(cut, buffer)) if isinstance(buffer, tuple) else buffer[which]

        return Buffers(*map(cut, vars(self).values()))
