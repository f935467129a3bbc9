"""The operations that architectures are written in: each holds its weights and computes on float32 rows.

Rows are C-contiguous float32 arrays [n, width], n being the tokens of one micro-batch. The arithmetic is
bankml._native's; its bits are those of llama.cpp b11192's CPU backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.model.batch import Batch
from bankml.model.shape import ExpertsShape, ModelConfig, RopeConfig, tensor_name
from bankml.model.span import Span
from bankml.model.weights import Weights

if TYPE_CHECKING:
    from bankml.model.kv_cache import LayerCells, SpanCells

Rows = npt.NDArray[np.float32]
Activation = Callable[[_native.Pool, Rows, Rows], None]

silu: Activation = _native.swiglu
gelu: Activation = _native.geglu


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
        self._product = _native.Projection(pool, columns, list(parts), bias)

    def __call__(self, x: Rows, y: Rows) -> None:
        """y [n, rows] = W x + b, x [n, columns]."""
        self._product.apply(x, y, self._batch.length)
        self._batch.checkpoint()

    def add_to(self, x: Rows, y: Rows, factor: float = 1.0) -> None:
        """y += factor * (W x + b)."""
        self._product.add_to(x, y, self._batch.length, factor=factor)
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

    def add_to(self, x: Rows, y: Rows) -> None:
        """y += norm(x); x is overwritten."""
        self(x, x)
        _native.add(x, y)


class LayerNorm:
    """y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias; `weight` and `bias` float32 [width]."""

    def __init__(self, pool: _native.Pool, weight: Rows, bias: Rows, eps: float) -> None:
        self._pool = pool
        self._weight, self._bias, self._eps = weight, bias, eps

    def __call__(self, x: Rows, y: Rows) -> None:
        """y may be x."""
        _native.layer_norm(self._pool, x, self._weight, self._bias, self._eps, y)


class Rope:
    """Rotary positions. `neox` rotates the halves of a head (i, i + n/2), else adjacent pairs (2i, 2i + 1).

    `index`: which of a micro-batch's tables is its own. `factors` float32 [rotated / 2] divide the angles.
    """

    def __init__(
        self, pool: _native.Pool, config: ModelConfig, rope: RopeConfig, neox: bool, index: int, factors: Rows | None
    ) -> None:
        self._pool = pool
        self._neox = neox
        self._index = index
        self._head_size = config.head_size
        self._heads = config.heads + config.kv_heads
        rotated, magnitude, yarn = config.rotated, rope.attention_factor, rope.yarn
        self._shape = (
            _native.rope_plain(rotated, rope.base, magnitude, rope.factor, factors)
            if yarn is None
            else _native.rope_yarn(
                rotated, rope.base, rope.factor, rope.original_context, magnitude,
                yarn.beta_fast, yarn.beta_slow, yarn.log_multiplier, factors,
            )
        )  # fmt: skip

    def fill(self, spans: Sequence[Span], tables: Sequence[Rows]) -> None:
        """Writes the (cos, sin) pairs of the positions of all spans' tokens into its own table: [n, rotated]."""
        n, table = len(spans[0].tokens), tables[self._index]
        for i, span in enumerate(spans):
            _native.rope_table(self._shape, span.position, table[i * n : (i + 1) * n])

    def __call__(self, tables: Sequence[Rows], qkv: Rows) -> None:
        """Rotates Q's and K's heads, which stand first in the rows of `qkv`, in place."""
        _native.rope_rotate(self._pool, tables[self._index], self._neox, self._heads, self._head_size, qkv)


class Attention:
    """Causal attention over one layer's K/V cells, `cells` a sequence; `window` 0: all of them."""

    def __init__(
        self, pool: _native.Pool, batch: Batch, config: ModelConfig, cells: int, llama_threads: int, window: int = 0
    ) -> None:
        self._pool = pool
        self._batch = batch
        self._q_width = config.q_width
        self._query_factor = config.query_factor
        self._shape = _native.AttentionShape(
            config.heads, config.kv_heads, config.head_size, config.attention_scale, cells, llama_threads,
            config.attention_softcap, window,
        )  # fmt: skip

    def __call__(self, qkv: Rows, cells: LayerCells, out: Rows) -> None:
        """Stores K and V of `qkv` in the cells of each span's rows, then attends: out [n, heads * head_size]."""
        if self._query_factor != 1.0:
            _native.scale(qkv, self._q_width, self._query_factor)
        if len(cells) == 1:
            self._attend(qkv, cells[0], out)
        else:
            n = self._batch.length
            for i, own in enumerate(cells):
                part = slice(i * n, (i + 1) * n)
                self._attend(qkv[part], own, out[part])
        self._batch.checkpoint()

    def _attend(self, qkv: Rows, cells: SpanCells, out: Rows) -> None:
        k, v, (position, places, positions) = cells
        _native.attend(self._pool, self._shape, qkv, position, k, v, out, places, positions)

    def scale_queries(self, qkv: Rows, factors: npt.NDArray[np.float32]) -> None:
        """Multiplies Q by a factor of each row's own: [n]."""
        _native.scale_rows(qkv, self._q_width, factors)


class Mlp:
    """D (act(G x) * U x); `activation` computes act(gate) * up from rows [n, 2 * n_ff]."""

    def __init__(self, pool: _native.Pool, gate_up: Linear, down: Linear, activation: Activation) -> None:
        self._pool = pool
        self._gate_up = gate_up
        self._down = down
        self._activation = activation

    def __call__(self, x: Rows, y: Rows, gate_up: Rows, gated: Rows) -> None:
        """y = the MLP of x, and may be x; `gate_up` [n, 2 * n_ff] and `gated` [n, n_ff] are buffers."""
        self._gate_up(x, gate_up)
        self._activation(self._pool, gate_up, gated)
        self._down(gated, y)

    def add_to(self, x: Rows, y: Rows, gate_up: Rows, gated: Rows, factor: float = 1.0) -> None:
        """y += factor * the MLP of x."""
        self._gate_up(x, gate_up)
        self._activation(self._pool, gate_up, gated)
        self._down.add_to(gated, y, factor)


class PlainMlp:
    """D gelu(U x)."""

    def __init__(self, pool: _native.Pool, up: Linear, down: Linear) -> None:
        self._pool = pool
        self._up, self._down = up, down

    def add_to(self, x: Rows, y: Rows, inner: Rows) -> None:
        """y += the MLP of x; `inner` [n, n_ff] is a buffer."""
        self._up(x, inner)
        _native.gelu(self._pool, inner)
        self._down.add_to(inner, y)


class ExpertMlp:
    """A router and its experts: each row goes through the MLPs that the router finds most probable."""

    def __init__(self, batch: Batch, router: Linear, experts: _native.Experts) -> None:
        self._batch = batch
        self._router = router
        self._experts = experts

    def add_to(self, x: Rows, y: Rows, logits: Rows) -> None:
        """y += the experts' weighted outputs of x; `logits` [n, experts] is a buffer."""
        self._router(x, logits)
        self._experts.add_to(logits, x, y, self._batch.length)
        self._batch.checkpoint()


@dataclass(frozen=True)
class ModelOps:
    """Makes the operations of one model out of its weights, and shares those that layers have in common.

    `ropes` and `attentions`: those of layers that see every position, then those of layers with a sliding window.
    """

    config: ModelConfig
    weights: Weights
    pool: _native.Pool
    batch: Batch
    ropes: Sequence[Rope]
    attentions: Sequence[Attention]

    def rope(self, i: int) -> Rope:
        return self.ropes[self.config.windowed(i)]

    def attention(self, i: int) -> Attention:
        return self.attentions[self.config.windowed(i)]

    def linear(self, i: int, *names: str) -> Linear:
        """Layer i's matrices of these names, which meet the same activations, with the biases that the file has."""
        return self.matrices(*(tensor_name(i, name) for name in names))

    def matrices(self, *tensors: str) -> Linear:
        """The same by the full names of the matrices."""
        biases = [tensor.removesuffix("weight") + "bias" for tensor in tensors]
        if not any(self.weights.has(bias) for bias in biases):
            return self._product(tensors, None)
        shapes = [self.weights.shape(tensor) for tensor in tensors]
        added = [
            self.weights.vector(bias) if self.weights.has(bias) else np.zeros(shape[1], np.float32)
            for bias, shape in zip(biases, shapes, strict=True)
        ]
        return self._product(tensors, np.concatenate(added))

    def _product(self, tensors: Sequence[str], bias: Rows | None) -> Linear:
        shapes = [self.weights.shape(tensor) for tensor in tensors]
        parts = [
            (self.weights.type(tensor), self.weights.blocks(tensor), shape[1])
            for tensor, shape in zip(tensors, shapes, strict=True)
        ]
        return Linear(self.pool, self.batch, shapes[0][0], parts, bias)

    def qkv(self, i: int) -> Linear:
        """Layer i's Q, K and V: three matrices, or one, whose bias may be in three parts."""
        if not self.weights.has(tensor_name(i, "attn_qkv")):
            return self.linear(i, "attn_q", "attn_k", "attn_v")
        biases = [tensor_name(i, f"attn_{part}.bias") for part in "qkv"]
        if self.weights.has(tensor_name(i, "attn_qkv.bias")) or not all(map(self.weights.has, biases)):
            return self.linear(i, "attn_qkv")
        return self._product([tensor_name(i, "attn_qkv")], np.concatenate(list(map(self.weights.vector, biases))))

    def norm(self, i: int, name: str) -> RMSNorm:
        return self.norm_of(tensor_name(i, name))

    def norm_of(self, tensor: str) -> RMSNorm:
        return RMSNorm(self.pool, self.weights.vector(tensor), self.config.norm_eps)

    def layer_norm(self, i: int, name: str) -> LayerNorm:
        return self.layer_norm_of(tensor_name(i, name).removesuffix(".weight"))

    def layer_norm_of(self, tensor: str) -> LayerNorm:
        """`tensor`: the name without `.weight` and `.bias`."""
        weight, bias = (self.weights.vector(f"{tensor}.{part}") for part in ("weight", "bias"))
        return LayerNorm(self.pool, weight, bias, self.config.norm_eps)

    def plain_mlp(self, i: int) -> PlainMlp:
        return PlainMlp(self.pool, self.linear(i, "ffn_up"), self.linear(i, "ffn_down"))

    def mlp(self, i: int, activation: Activation = silu) -> Mlp:
        """Layer i's MLP; `ffn_up` alone has gate and up below each other."""
        separate = self.weights.has(tensor_name(i, "ffn_gate"))
        gate_up = self.linear(i, "ffn_gate", "ffn_up") if separate else self.linear(i, "ffn_up")
        return Mlp(self.pool, gate_up, self.linear(i, "ffn_down"), activation)

    def gelu_mlp(self, i: int) -> Mlp:
        return self.mlp(i, gelu)

    def experts(self, i: int, shape: ExpertsShape) -> ExpertMlp:
        """Layer i's mixture of experts."""

        def part(name: str) -> tuple[int, npt.NDArray[np.uint8], int]:
            tensor = tensor_name(i, name)
            return self.weights.type(tensor), self.weights.blocks(tensor), self.weights.shape(tensor)[1]

        experts = _native.Experts(
            self.pool, shape.count, shape.used, self.config.n_embd,
            part("ffn_gate_exps"), part("ffn_up_exps"), part("ffn_down_exps"),
        )  # fmt: skip
        return ExpertMlp(self.batch, self.linear(i, "ffn_gate_inp"), experts)
