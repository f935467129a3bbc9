"""Attention over a q8_0 cache: every instruction set computes the definition's bits, on any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml import _native
from tests.model.test_kernels import POOLS, odd_floats, same, with_kernels


def matrix(n):
    """The Hadamard matrix of n values over sqrt(n), in double."""
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h / np.sqrt(n)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from([8, 16, 64, 128, 256]), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_the_rotation_is_the_hadamard_matrix(n, rows, seed):
    x = odd_floats(np.random.default_rng(seed), rows, n)

    def turned():
        y = x.copy()
        _native.hadamard(y)
        return y

    same(turned)
    assert np.allclose(turned(), x.astype(np.float64) @ matrix(n), rtol=1e-5, atol=1e-5 * np.abs(x).max())


def blocks(rng, *shape):
    """Random q8_0 rows of `shape[-1]` values, with some bytes of -128."""
    raw = rng.integers(0, 256, (*shape[:-1], shape[-1] // 32, 34), dtype=np.uint8)
    scales = (rng.standard_normal(raw.shape[:-1]) * 0.01).astype(np.float16)
    raw[..., :2] = scales[..., None].view(np.uint8)
    return raw.reshape(*shape[:-1], -1)


def attention(head_size, n, position):
    rng = np.random.default_rng(head_size * 1000 + n + position)
    heads, kv_heads, cells = 4, 2, 768
    qkv = rng.standard_normal((n, (heads + 2 * kv_heads) * head_size)).astype(np.float32)
    cache = blocks(rng, 2, kv_heads, cells, head_size)
    shape = _native.AttentionShape(heads, kv_heads, head_size, 0.125, cells, 3)

    def attended(pool=POOLS[2]):
        k, v, out = cache[0].copy(), cache[1].copy(), np.zeros((n, heads * head_size), np.float32)
        _native.attend(pool, shape, qkv, position, k, v, out)
        return np.concatenate([out.view(np.uint8).reshape(-1), k.reshape(-1), v.reshape(-1)])

    return attended


@pytest.mark.parametrize("head_size", [32, 64, 96, 128, 192, 256])
@pytest.mark.parametrize("n,position", [(1, 0), (1, 77), (1, 600), (5, 40), (67, 33)])
def test_attention(head_size, n, position):
    attended = attention(head_size, n, position)
    same(attended)
    one = attended(POOLS[1])
    for pool in POOLS.values():
        assert np.array_equal(one, attended(pool))


@pytest.mark.parametrize("name", _native.kernel_sets())
def test_attention_is_near_that_over_exact_values(name):
    """The rotations cancel: what comes out is near plain softmax attention over Q, K and V as they were given."""
    rng = np.random.default_rng(3)
    n, size = 40, 128
    qkv = rng.standard_normal((n, 3 * size)).astype(np.float32)
    row = size // 32 * 34
    k, v, out = np.zeros((1, 64, row), np.uint8), np.zeros((1, 64, row), np.uint8), np.zeros((n, size), np.float32)
    shape = _native.AttentionShape(1, 1, size, 0.09, 64, 1)
    with_kernels(name, lambda: _native.attend(POOLS[2], shape, qkv, 0, k, v, out))
    q, keys, values = qkv.astype(np.float64).reshape(n, 3, size).transpose(1, 0, 2)
    scores = np.where(np.tri(n, dtype=bool), q @ keys.T * 0.09, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    want = weights / weights.sum(axis=1, keepdims=True) @ values
    assert np.abs(out - want).max() < 0.03


def test_shapes_that_do_not_fit_are_refused():
    pool, rows = POOLS[1], np.zeros((2, 96), np.float32)
    cache, out = np.zeros((1, 16, 34), np.uint8), np.zeros((2, 32), np.float32)
    shape = _native.AttentionShape(1, 1, 32, 1.0, 16, 1)
    with pytest.raises(ValueError, match="do not fit into the K/V cache"):
        _native.attend(pool, shape, rows, 15, cache, cache.copy(), out)
    with pytest.raises(ValueError, match="does not fit the attention's heads"):
        _native.attend(pool, shape, rows, 0, cache, np.zeros((1, 16, 33), np.uint8), out)
    with pytest.raises(ValueError, match="whole blocks of 32"):
        shape = _native.AttentionShape(1, 1, 24, 1.0, 16, 1)
        _native.attend(
            pool, shape, np.zeros((2, 72), np.float32), 0, cache, cache.copy(), np.zeros((2, 24), np.float32)
        )
    with pytest.raises(ValueError, match="power of two"):
        _native.hadamard(np.zeros((1, 24), np.float32))
