"""The decoder both architectures share: one micro-batch of tokens through every layer.

Each layer is two equations: x += O(attend(Q x', K x', V x')) and x += D(silu(G x'') * U x''), where x' and x'' are x
after an RMS norm. llama.py and qwen3.py say what lies between the projections and the attention.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bankml import _native
from bankml.model.config import ModelConfig
from bankml.model.kv_cache import KVCache
from bankml.model.pages import zeros
from bankml.model.weights import Weights

Rows = npt.NDArray[np.float32]

MICRO_BATCH = 512  # tokens, as llama-server cuts a prompt


@dataclass(frozen=True)
class DecoderLayer:
    """One layer's norms (float32 [n_embd]) and projections; q_norm and k_norm (float32 [head_size]) are Qwen3's."""

    attn_norm: Rows
    qkv: _native.Projection
    attn_output: _native.Projection
    ffn_norm: Rows
    gate_up: _native.Projection
    down: _native.Projection
    q_norm: Rows | None
    k_norm: Rows | None


@dataclass(frozen=True)
class Buffers:
    """The activations of a micro-batch of n tokens, made once and written over: [n, …] float32."""

    x: Rows  # the residual stream, n_embd wide
    normed: Rows  # n_embd
    qkv: Rows  # Q's heads, K's heads, V's heads
    attended: Rows  # heads * head_size
    gate_up: Rows  # 2 * n_ff
    gated: Rows  # n_ff
    rope: Rows  # (cos, sin) pairs, head_size wide

    @classmethod
    def of(cls, plan: ModelConfig, n: int) -> "Buffers":
        """Attention and feed-forward never hold their activations at once, so the two share one piece of memory."""

        def rows(width: int, memory: Rows | None = None, start: int = 0) -> Rows:
            if memory is None:
                return zeros((n, width), np.float32)
            return memory[start * n : (start + width) * n].reshape(n, width)

        attended = plan.heads * plan.head_size
        shared: Rows = zeros((n * max(plan.qkv_width + attended, 3 * plan.n_ff),), np.float32)
        return cls(
            x=rows(plan.n_embd),
            normed=rows(plan.n_embd),
            qkv=rows(plan.qkv_width, shared),
            attended=rows(attended, shared, plan.qkv_width),
            gate_up=rows(2 * plan.n_ff, shared),
            gated=rows(plan.n_ff, shared, 2 * plan.n_ff),
            rope=rows(plan.head_size),
        )

    def first(self, n: int) -> "Buffers":
        return Buffers(*(buffer[:n] for buffer in vars(self).values()))

    def last(self, n: int) -> "Buffers":
        return Buffers(*(buffer[n - 1 : n] for buffer in vars(self).values()))


class Graph(Protocol):
    """What an architecture does to Q and K between their projection and the attention."""

    def place(self, layer: DecoderLayer, b: Buffers) -> None: ...


class Decoder:
    """Weights, graph and buffers of one model: tokens in, the residual stream and logits out."""

    def __init__(
        self, plan: ModelConfig, weights: Weights, graph: Graph, pool: _native.Pool, cells: int, llama_threads: int
    ) -> None:
        self._plan = plan
        self._pool = pool
        self._graph = graph
        self._weights = weights
        self._embedding = _native.Embedding(plan.weight_type, plan.n_embd, weights.blocks("token_embd.weight"))
        self._layers = [read_layer(plan, weights, pool, i) for i in range(plan.n_layer)]
        self._output_norm = weights.vector("output_norm.weight")
        self._output = projection(plan, weights, pool, ["token_embd" if plan.tied else "output"])
        self._rope = rope_shape(plan)
        self._attention = _native.AttentionShape(
            plan.heads, plan.kv_heads, plan.head_size, float(np.float32(1) / np.sqrt(np.float32(plan.head_size))),
            cells, llama_threads,
        )  # fmt: skip
        self._buffers = Buffers.of(plan, MICRO_BATCH)
        self._one = self._buffers.first(1)

    def forward(self, tokens: Sequence[int], position: int, cache: KVCache, logits: Rows | None) -> None:
        """Computes tokens at `position` on into `cache`; with `logits` (float32 [1, n_vocab]) the last token's logits.

        At most MICRO_BATCH tokens; the last layer goes on with the last row alone, as llama.cpp's output rows do.
        """
        n = len(tokens)
        b = self._one if n == 1 else self._buffers.first(n)
        self._embedding.look_up(np.asarray(tokens, np.int32), b.x)
        _native.rope_table(self._rope, position, b.rope)
        *body, last = zip(self._layers, cache.layers, strict=True)
        for layer, (k, v) in body:
            self._attend(layer, b, position, k, v)
            self._feed_forward(layer, b)
        layer, (k, v) = last
        self._attend(layer, b, position, k, v)
        if logits is not None:
            self._predict(layer, b.last(n), logits)

    def _predict(self, layer: DecoderLayer, b: Buffers, logits: Rows) -> None:
        """The last layer's end and the output, for the one row whose logits are wanted."""
        self._feed_forward(layer, b)
        _native.rms_norm(self._pool, b.x, self._output_norm, self._plan.rms_eps, b.normed)
        self._output.apply(b.normed, logits)

    def _attend(self, layer: DecoderLayer, b: Buffers, position: int, k: npt.NDArray[Any], v: npt.NDArray[Any]) -> None:
        _native.rms_norm(self._pool, b.x, layer.attn_norm, self._plan.rms_eps, b.normed)
        layer.qkv.apply(b.normed, b.qkv)
        self._graph.place(layer, b)
        _native.attend(self._pool, self._attention, b.qkv, position, k, v, b.attended)
        layer.attn_output.add_to(b.attended, b.x)

    def _feed_forward(self, layer: DecoderLayer, b: Buffers) -> None:
        _native.rms_norm(self._pool, b.x, layer.ffn_norm, self._plan.rms_eps, b.normed)
        layer.gate_up.apply(b.normed, b.gate_up)
        _native.swiglu(self._pool, b.gate_up, b.gated)
        layer.down.add_to(b.gated, b.x)


def projection(plan: ModelConfig, weights: Weights, pool: _native.Pool, names: Sequence[str]) -> _native.Projection:
    """The matrices of these names, which meet the same activation, as one."""
    tensors = [weights.blocks(f"{name}.weight") for name in names]
    shapes = [weights.shape(f"{name}.weight") for name in names]
    return _native.Projection(
        pool, plan.weight_type, shapes[0][0], list(zip(tensors, (s[1] for s in shapes), strict=True))
    )


def read_layer(plan: ModelConfig, weights: Weights, pool: _native.Pool, i: int) -> DecoderLayer:
    def named(*names: str) -> _native.Projection:
        return projection(plan, weights, pool, [f"blk.{i}.{name}" for name in names])

    def norm(name: str) -> Rows:
        return weights.vector(f"blk.{i}.{name}.weight")

    per_head = plan.architecture == "qwen3"
    return DecoderLayer(
        attn_norm=norm("attn_norm"),
        qkv=named("attn_q", "attn_k", "attn_v"),
        attn_output=named("attn_output"),
        ffn_norm=norm("ffn_norm"),
        gate_up=named("ffn_gate", "ffn_up"),
        down=named("ffn_down"),
        q_norm=norm("attn_q_norm") if per_head else None,
        k_norm=norm("attn_k_norm") if per_head else None,
    )


def rope_shape(plan: ModelConfig) -> _native.RopeShape:
    rope = plan.rope
    if rope.yarn_factor is None:
        return _native.rope_plain(plan.head_size, rope.base, rope.attention_factor)
    return _native.rope_yarn(plan.head_size, rope.base, rope.yarn_factor, rope.original_context, rope.attention_factor)
