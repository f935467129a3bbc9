"""The q8_0 cache's operations against the reference build's own, bit for bit."""

import numpy as np
import pytest

from bankml import _native
from tests.ggml import Ggml, library
from tests.model.test_kernels_oracle import _i64, _p, assert_same_bits, ggml, kernel_set, rng  # noqa: F401

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("width", [64, 128, 256])
def test_hadamard(kernel_set, ggml, rng, width):  # noqa: F811
    x = rng.standard_normal((37, width)).astype(np.float32)
    ours = x.copy()
    _native.hadamard(ours)
    assert_same_bits(ours, ggml.hadamard(x))


def quantized(x):
    """Rows of float32 as the reference quantizes them: uint8 [..., d / 32 * 34]."""
    x = np.ascontiguousarray(x)
    y = np.zeros((*x.shape[:-1], x.shape[-1] // 32 * 34), np.uint8)
    library("ggml-cpu").quantize_row_q8_0(x.ctypes.data_as(_p()), y.ctypes.data_as(_p()), _i64(x.size))
    return y


@pytest.mark.parametrize(
    "head_size,turned_qk,turned_v", [(32, 0, 0), (64, 64, 64), (96, 0, 0), (128, 128, 64), (192, 64, 64)]
)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n,position", [(1, 0), (1, 200), (1, 700), (2, 30), (64, 300), (70, 10)])
def test_attention(kernel_set, rng, head_size, turned_qk, turned_v, threads, n, position):  # noqa: F811
    if kernel_set == "portable" and n * (position + n) > 10000:
        pytest.skip("the definition is slow; the other sets are compared at this size")
    heads, kv_heads, cells = 6, 2, 1024
    reference = Ggml(threads)

    def turn(x, together):
        return reference.hadamard(x.reshape(-1, together)).reshape(x.shape) if together else x

    k, v = (quantized(rng.standard_normal((kv_heads, cells, head_size)).astype(np.float32)) for _ in range(2))
    qkv = rng.standard_normal((n, heads + 2 * kv_heads, head_size)).astype(np.float32)
    qkv[:, :heads] *= 2
    scale = float(np.float32(1) / np.sqrt(np.float32(head_size)))
    out = np.zeros((n, heads * head_size), np.float32)
    shape = _native.AttentionShape(heads, kv_heads, head_size, scale, cells, threads)
    _native.attend(_native.Pool(2), shape, qkv.reshape(n, -1), position, k, v, out)
    for cache, fresh, together in (
        (k, qkv[:, heads : heads + kv_heads], turned_qk),
        (v, qkv[:, heads + kv_heads :], turned_v),
    ):
        want = quantized(turn(np.ascontiguousarray(fresh.transpose(1, 0, 2)), together))
        assert np.array_equal(cache[:, position : position + n], want)
    seen = -(-(position + n) // 256) * 256
    visible = np.arange(seen)[None] <= (position + np.arange(n))[:, None]
    mask = np.where(visible, 0.0, -np.inf).astype(np.float16).view(np.uint16)
    q = turn(np.ascontiguousarray(qkv[:, :heads].transpose(1, 0, 2)), turned_qk)
    theirs = turn(reference.attention_q8(q, k[:, :seen], v[:, :seen], mask, scale), turned_v)
    reference.close()
    assert_same_bits(out.reshape(theirs.shape), theirs)
