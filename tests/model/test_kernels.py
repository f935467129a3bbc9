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
        _native.Projection(POOLS[2], k, [(1, w, rows)]).add_to(x, y)
        return y

    same(product)


Q1_0, Q2_0 = 41, 42
BLOCK_WEIGHTS = {Q1_0: 128, Q2_0: 64}


def random_blocks(rng, kind, rows, k):
    blocks = rng.integers(0, 256, (rows, k // BLOCK_WEIGHTS[kind], 18), dtype=np.uint8)
    scales = (rng.standard_normal(blocks.shape[:2]) * 0.1).astype(np.float16)
    blocks[:, :, :2] = scales.view(np.uint8).reshape(*blocks.shape[:2], 2)
    return blocks


def widened(kind, rows, k, blocks):
    y = np.zeros((rows, k), np.float32)
    _native.Embedding(kind, k, blocks.reshape(-1)).look_up(np.arange(rows, dtype=np.int32), y)
    return y


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([Q1_0, Q2_0]), st.integers(1, 70), st.integers(1, 5), st.integers(1, 11), st.integers(0, 2**32 - 1)
)
def test_quantized_products(kind, rows, groups, columns, seed):
    rng = np.random.default_rng(seed)
    k = groups * 128
    blocks = random_blocks(rng, kind, rows, k)
    x = odd_floats(rng, columns, k)
    if seed % 4 == 0:
        x[0, rng.integers(0, k)] = rng.choice(np.array([np.inf, -np.inf, np.nan], np.float32))

    def product():
        y = np.zeros((columns, rows), np.float32)
        _native.Projection(POOLS[2], k, [(kind, blocks.reshape(-1), rows)]).apply(x, y)
        return y

    same(product)


@pytest.mark.parametrize("kind", [Q1_0, Q2_0])
def test_quantized_products_are_near_the_widened_ones(kind):
    rng = np.random.default_rng(kind)
    rows, k = 48, 1024
    blocks, x = random_blocks(rng, kind, rows, k), rng.standard_normal((3, k)).astype(np.float32)
    y = np.zeros((3, rows), np.float32)
    _native.Projection(POOLS[1], k, [(kind, blocks.reshape(-1), rows)]).apply(x, y)
    want = x.astype(np.float64) @ widened(kind, rows, k, blocks).T.astype(np.float64)
    assert np.abs(y - want).max() < 0.02 * np.abs(want).max()


def test_what_is_no_number_quantizes_to_minus_128():
    x = np.ones(64, np.float32)
    x[3], x[40] = np.inf, np.nan
    q, d, total = np.zeros(64, np.int8), np.zeros(2, np.float32), np.zeros(2, np.int32)
    for name in _native.kernel_sets():
        with_kernels(name, lambda: _native.quantize_q8(x, q, d, total))
        assert q[3] == -128 and q[40] == -128 and total[0] == q[:32].sum(dtype=np.int32)
        assert np.isinf(d[0])


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
        (1, (rng.standard_normal((rows, 256)) * 0.1).astype(np.float16).view(np.uint8).reshape(-1), rows)
        for rows in (300, 64, 64)
    ]
    for n in (1, 2, 37):
        x = rng.standard_normal((n, 256)).astype(np.float32)
        answers = []
        for pool in POOLS.values():
            y = np.zeros((n, 428), np.float32)
            _native.Projection(pool, 256, parts).apply(x, y)
            answers.append(y)
        assert all(np.array_equal(answers[0].view(np.uint32), a.view(np.uint32)) for a in answers)


def test_shapes_that_do_not_fit_are_refused():
    pool = POOLS[1]
    weights = np.zeros(64 * 32 * 2, np.uint8)
    with pytest.raises(ValueError, match="bytes do not fit"):
        _native.Projection(pool, 32, [(1, weights, 63)])
    projection = _native.Projection(pool, 32, [(1, weights, 64)])
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
