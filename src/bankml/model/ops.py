"""The operations that architectures are written in: each holds its weights and computes on float32 rows.

Rows are C-contiguous float32 arrays [n, width], n being the tokens of one micro-batch. The arithmetic is
bankml._native's; its bits are those of llama.cpp b11192's CPU backend.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.model.batch import Batch
from bankml.model.shape import ModelConfig
from bankml.model.span import Span
from bankml.model.weights import Weights

Rows = npt.NDArray[np.float32]
Activation = Callable[[_native.Pool, Rows, Rows], None]


class Linear:
    """y = W x + b. W is one matrix or several below each other, each with its own weight type; b is optional."""

    def __init__(
        self,
        pool: _native.Pool,
        batch: Batch,
        columns: int,
        parts: Sequence[tuple[int, npt.NDArray[np.uint8], int]],
        bias: Rows | None = None,
    ) -> None:
        """`parts`: (type number, blocks, rows) of each matrix, all of `columns` columns; `bias`: [all rows]."""
        self._batch = batch
        self._product = _native.Projection(pool, columns, list(parts))
        self._bias = bias

    def __call__(self, x: Rows, y: Rows) -> None:
        """y [n, rows] = W x + b, x [n, columns]."""
        self._product.apply(x, y, self._batch.length)
        if self._bias is not None:
            _native.add_bias(y, self._bias)
        self._batch.checkpoint()

    def add_to(self, x: Rows, y: Rows) -> None:
        """y += W x + b."""
        self._product.add_to(x, y, self._batch.length)
        if self._bias is not None:
            _native.add_bias(y, self._bias)
        self._batch.checkpoint()


class RMSNorm:
    """y = x / sqrt(mean(x^2) + eps) * weight; `weight` float32 [width]."""

    def __init__(self, pool: _native.Pool, weight: Rows, eps: float) -> None:
        self._pool = pool
        self.weight = weight
        self._eps = eps

    def __call__(self, x: Rows, y: Rows) -> None:
        _native.rms_norm(self._pool, x, self.weight, self._eps, y)

    def per_head(self, x: Rows, first: int, heads: int) -> None:
        """Norms `heads` heads of weight's width each, from column `first` on, in place."""
        _native.rms_norm_heads(self._pool, x, self.weight, self._eps, first, heads)


class Rope:
    """Rotary positions. `neox` rotates the halves of a head (i, i + n/2), else adjacent pairs (2i, 2i + 1)."""

    def __init__(self, pool: _native.Pool, config: ModelConfig, neox: bool) -> None:
        self._pool = pool
        self._neox = neox
        self._head_size = config.head_size
        self._heads = config.heads + config.kv_heads
        rope = config.rope
        self._shape = (
            _native.rope_plain(config.head_size, rope.base, rope.attention_factor)
            if rope.yarn_factor is None
            else _native.rope_yarn(
                config.head_size, rope.base, rope.yarn_factor, rope.original_context, rope.attention_factor
            )
        )

    def table(self, spans: Sequence[Span], table: Rows) -> None:
        """Writes the (cos, sin) pairs of the positions of all spans' tokens: [n, head_size]."""
        n = len(spans[0].tokens)
        for i, span in enumerate(spans):
            _native.rope_table(self._shape, span.position, table[i * n : (i + 1) * n])

    def __call__(self, table: Rows, qkv: Rows) -> None:
        """Rotates Q's and K's heads, which stand first in the rows of `qkv`, in place."""
        _native.rope_rotate(self._pool, table, self._neox, self._heads, self._head_size, qkv)


class Attention:
    """Causal attention over one layer's K/V cells."""

    def __init__(self, pool: _native.Pool, batch: Batch, shape: _native.AttentionShape, layer: int) -> None:
        self._pool = pool
        self._batch = batch
        self._shape = shape
        self._layer = layer

    def __call__(self, qkv: Rows, out: Rows) -> None:
        """Stores K and V of `qkv` in the layer's cells of their spans, then attends: out [n, heads * head_size]."""
        n = self._batch.length
        for i, span in enumerate(self._batch.spans):
            rows = slice(i * n, (i + 1) * n)
            k, v = span.cells.layers[self._layer]
            _native.attend(self._pool, self._shape, qkv[rows], span.position, k, v, out[rows])
        self._batch.checkpoint()


class Mlp:
    """y += D (act(G x) * U x); `activation` computes act(gate) * up from rows [n, 2 * n_ff]."""

    def __init__(self, pool: _native.Pool, gate_up: Linear, down: Linear, activation: Activation) -> None:
        self._pool = pool
        self._gate_up = gate_up
        self._down = down
        self._activation = activation

    def add_to(self, x: Rows, y: Rows, gate_up: Rows, gated: Rows) -> None:
        """`gate_up` [n, 2 * n_ff] and `gated` [n, n_ff] are buffers."""
        self._gate_up(x, gate_up)
        self._activation(self._pool, gate_up, gated)
        self._down.add_to(gated, y)


silu: Activation = _native.swiglu


@dataclass(frozen=True)
class ModelOps:
    """Makes the operations of one model out of its weights, and shares those that all layers use.

    `cells` is the number of K/V cells of a sequence, `llama_threads` that of the llama-server whose bits are computed.
    """

    config: ModelConfig
    weights: Weights
    pool: _native.Pool
    batch: Batch
    rope: Rope
    cells: int
    llama_threads: int

    def linear(self, *names: str, bias: bool = False) -> Linear:
        """The matrices `<name>.weight`, which meet the same activations; `bias`: with `<name>.bias` of each."""
        tensors = [f"{name}.weight" for name in names]
        shapes = [self.weights.shape(tensor) for tensor in tensors]
        parts = [
            (self.weights.type(tensor), self.weights.blocks(tensor), shape[1])
            for tensor, shape in zip(tensors, shapes, strict=True)
        ]
        added = np.concatenate([self.weights.vector(f"{name}.bias") for name in names]) if bias else None
        return Linear(self.pool, self.batch, shapes[0][0], parts, added)

    def attention(self, layer: int, scale: float | None = None) -> Attention:
        """The attention of one layer. `scale` None means 1 / sqrt(head_size)."""
        config = self.config
        scale = float(np.float32(1) / np.sqrt(np.float32(config.head_size))) if scale is None else scale
        shape = _native.AttentionShape(
            config.heads, config.kv_heads, config.head_size, scale, self.cells, self.llama_threads
        )
        return Attention(self.pool, self.batch, shape, layer)

    def norm(self, name: str) -> RMSNorm:
        return RMSNorm(self.pool, self.weights.vector(f"{name}.weight"), self.config.rms_eps)

    def mlp(self, gate: str, up: str, down: str, activation: Activation = silu) -> Mlp:
        return Mlp(self.pool, self.linear(gate, up), self.linear(down), activation)
