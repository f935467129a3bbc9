"""Every instruction set computes the definition's bits, on any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml import _native

FAST = [name for name in _native.kernel_sets() if name != "portable"]
POOLS = {n: _native.Pool(n) for n in (1, 2, 3, 5)}


def with_kernels(name, compute):
    before = _native.kernel_set()
    assert _native.use_kernels(name)
    try:
        return compute()
    finally:
        _native.use_kernels(before)


def same(compute):
    want = with_kernels("portable", compute)
    for name in FAST:
        got = with_kernels(name, compute)
        assert np.array_equal(want.view(np.uint8), got.view(np.uint8)), name


def odd_floats(rng, *shape):
    """Random float32 with zeros of both signs, subnormals, infinities and huge values among them."""
    x = rng.standard_normal(shape).astype(np.float32) * np.float32(10) ** rng.integers(-3, 3, shape).astype(np.float32)
    special = np.array([0, -0.0, 1e-40, -1e-45, 65504, 65520, -7e4, 6e-8, 3e-8], np.float32)
    where = rng.random(shape) < 0.1
    return np.where(where, rng.choice(special, shape), x).astype(np.float32)


def test_an_unknown_set_is_not_taken():
    before = _native.kernel_set()
    assert not _native.use_kernels("avx1024")
    assert _native.kernel_set() == before
    assert "portable" in _native.kernel_sets()


def test_rounding_to_f16_and_back():
    raw = np.concatenate(
        [
            np.arange(0, 1 << 32, 65537, dtype=np.uint64).astype(np.uint32),
            np.array([0x7F800000, 0x7FC00001, 0xFF800001], np.uint32),
        ]
    )
    x = raw.view(np.float32)

    def rounded():
        y = np.zeros(x.size, np.uint16)
        _native.round_f16(x, y)
        return y

    same(rounded)
    finite = x[np.isfinite(x)]
    with np.errstate(over="ignore"):
        want = finite.astype(np.float16).view(np.uint16)
    got = np.zeros(finite.size, np.uint16)
    _native.round_f16(finite, got)
    assert np.array_equal(got, want)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 70), st.integers(1, 150), st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_f16_products(rows, k, columns, seed):
    rng = np.random.default_rng(seed)
    w = (rng.standard_normal((rows, k)) * 0.1).astype(np.float16).view(np.uint8).reshape(-1)
    x = odd_floats(rng, columns, k)
    before = rng.standard_normal((columns, rows)).astype(np.float32)

    def product():
        y = before.copy()
        _native.Projection(POOLS[2], 1, k, [(w, rows)]).add_to(x, y)
        return y

    same(product)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 600), st.integers(0, 2**32 - 1))
def test_norm_and_swiglu(width, seed):
    rng = np.random.default_rng(seed)
    x, weight = odd_floats(rng, 3, width), odd_floats(rng, width)
    gate_up = np.concatenate([odd_floats(rng, 3, width), odd_floats(rng, 3, width)], axis=1)

    def both():
        normed, gated = np.zeros_like(x), np.zeros_like(x)
        _native.rms_norm(POOLS[3], x, weight, 1e-5, normed)
        _native.swiglu(POOLS[3], gate_up, gated)
        return np.concatenate([normed, gated])

    with np.errstate(all="ignore"):
        same(both)


@pytest.mark.parametrize("head_size", [8, 24, 64, 72, 96, 128])
@pytest.mark.parametrize("n,position", [(1, 0), (1, 77), (1, 600), (5, 40), (64, 0), (67, 33)])
def test_attention(head_size, n, position):
    rng = np.random.default_rng(head_size * 1000 + n + position)
    heads, kv_heads, cells = 4, 2, 768
    qkv = rng.standard_normal((n, (heads + 2 * kv_heads) * head_size)).astype(np.float32)
    cache = rng.standard_normal((2, kv_heads, cells, head_size)).astype(np.float16).view(np.uint16)
    shape = _native.AttentionShape(heads, kv_heads, head_size, 0.125, cells, 3)

    def attended(pool=POOLS[2]):
        k, v, out = cache[0].copy(), cache[1].copy(), np.zeros((n, heads * head_size), np.float32)
        _native.attend(pool, shape, qkv, position, k, v, out)
        return out

    same(attended)
    one = attended(POOLS[1])
    for pool in POOLS.values():
        assert np.array_equal(one.view(np.uint32), attended(pool).view(np.uint32))


def test_bits_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(5)
    parts = [
        ((rng.standard_normal((rows, 256)) * 0.1).astype(np.float16).view(np.uint8).reshape(-1), rows)
        for rows in (300, 64, 64)
    ]
    for n in (1, 2, 37):
        x = rng.standard_normal((n, 256)).astype(np.float32)
        answers = []
        for pool in POOLS.values():
            y = np.zeros((n, 428), np.float32)
            _native.Projection(pool, 1, 256, parts).apply(x, y)
            answers.append(y)
        assert all(np.array_equal(answers[0].view(np.uint32), a.view(np.uint32)) for a in answers)


def test_shapes_that_do_not_fit_are_refused():
    pool = POOLS[1]
    weights = np.zeros(64 * 32 * 2, np.uint8)
    with pytest.raises(ValueError, match="bytes do not fit"):
        _native.Projection(pool, 1, 32, [(weights, 63)])
    projection = _native.Projection(pool, 1, 32, [(weights, 64)])
    with pytest.raises(ValueError, match="do not fit its matrices"):
        projection.apply(np.zeros((2, 32), np.float32), np.zeros((1, 64), np.float32))
    with pytest.raises(TypeError):
        projection.apply(np.zeros((2, 32), np.float64), np.zeros((2, 64), np.float32))
    cache = np.zeros((1, 16, 8), np.uint16)
    with pytest.raises(ValueError, match="do not fit into the K/V cache"):
        _native.attend(
            pool,
            _native.AttentionShape(1, 1, 8, 1.0, 16, 1),
            np.zeros((2, 24), np.float32),
            15,
            cache,
            cache.copy(),
            np.zeros((2, 8), np.float32),
        )
    with pytest.raises(ValueError, match="not in the vocabulary"):
        _native.Embedding(1, 32, weights).look_up(np.array([64], np.int32), np.zeros((1, 32), np.float32))
