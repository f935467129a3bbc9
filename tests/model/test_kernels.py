"""Every instruction set computes the definition's bits, on any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml import _native
from tests.model.weight_blocks import FORMATS, arranged, random_weights

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
    _native.Embedding(kind, k, arranged(kind, blocks, k)).look_up(np.arange(rows, dtype=np.int32), y)
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
        _native.Projection(POOLS[2], k, [(kind, arranged(kind, blocks, k), rows)]).apply(x, y)
        return y

    same(product)


@pytest.mark.parametrize("kind", [Q1_0, Q2_0])
def test_quantized_products_are_near_the_widened_ones(kind):
    rng = np.random.default_rng(kind)
    rows, k = 48, 1024
    blocks, x = random_blocks(rng, kind, rows, k), rng.standard_normal((3, k)).astype(np.float32)
    y = np.zeros((3, rows), np.float32)
    _native.Projection(POOLS[1], k, [(kind, arranged(kind, blocks, k), rows)]).apply(x, y)
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
def test_norm_swiglu_and_geglu(width, seed):
    rng = np.random.default_rng(seed)
    x, weight = odd_floats(rng, 3, width), odd_floats(rng, width)
    gate_up = np.concatenate([odd_floats(rng, 3, width), odd_floats(rng, 3, width)], axis=1)

    def both():
        normed, gated, other = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        _native.rms_norm(POOLS[3], x, weight, 1e-5, normed)
        _native.swiglu(POOLS[3], gate_up, gated)
        _native.geglu(POOLS[3], gate_up, other)
        return np.concatenate([normed, gated, other])

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


@pytest.mark.parametrize("dtype,head_size", [(np.uint16, 72), (np.uint16, 128), (np.uint8, 64)])
@pytest.mark.parametrize("n,position", [(1, 90), (1, 700), (5, 600), (67, 633)])
@pytest.mark.parametrize("softcap,window", [(0.0, 40), (2.0, 0), (5.0, 300)])
def test_attention_with_places(dtype, head_size, n, position, softcap, window):
    """Cells in any order with empty ones between, a window, and a soft-cap: equal in every instruction set, and near
    what the definition of attention says."""
    rng = np.random.default_rng(head_size + n + position)
    heads, kv_heads, cells = 4, 2, 1024
    order = rng.permutation(cells)[: position + n].astype(np.int32)
    positions = np.full(cells, -1, np.int32)
    positions[order] = np.arange(position + n)
    qkv = rng.standard_normal((n, (heads + 2 * kv_heads) * head_size)).astype(np.float32)
    row = head_size if dtype is np.uint16 else head_size // 32 * 34
    shape = _native.AttentionShape(heads, kv_heads, head_size, 0.125, cells, 3, softcap, window)
    k, v = np.zeros((2, kv_heads, cells, row), dtype)
    for begin in range(0, position, 300):
        before = rng.standard_normal((min(300, position - begin), qkv.shape[1])).astype(np.float32)
        places = order[begin : begin + len(before)]
        out = np.zeros((len(before), heads * head_size), np.float32)
        _native.attend(POOLS[2], shape, before, begin, k, v, out, places, positions)

    def attended():
        out = np.zeros((n, heads * head_size), np.float32)
        _native.attend(POOLS[2], shape, qkv, position, k, v, out, order[position:], positions)
        return out

    same(attended)
    if dtype is np.uint16:
        want = attention_by_definition(qkv, k, v, order, position, softcap, window)
        assert np.abs(attended() - want).max() < 0.02


def attention_by_definition(qkv, k, v, order, position, softcap, window):
    """In double; order[p] is the cell of position p."""
    n, kv_heads, size = len(qkv), len(k), k.shape[2]
    heads = qkv.shape[1] // size - 2 * kv_heads
    keys, values = (x[:, order].view(np.float16).astype(np.float64) for x in (k, v))
    out = np.zeros((n, heads, size))
    for i in range(n):
        last = position + i
        first = max(0, last + 1 - window) if window else 0
        for h in range(heads):
            kv = h // (heads // kv_heads)
            scores = keys[kv, first : last + 1] @ qkv[i, h * size : (h + 1) * size].astype(np.float64) * 0.125
            scores = softcap * np.tanh(scores / softcap) if softcap else scores
            weights = np.exp(scores - scores.max())
            out[i, h] = weights @ values[kv, first : last + 1] / weights.sum()
    return out.reshape(n, -1)


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_K", "IQ4_XS", "F16", "Q1_0", "Q2_0"])
def test_experts(kind, n):
    """Each row by itself, through the experts of its highest probabilities, but for types that have panels."""
    rng = np.random.default_rng(n)
    count, used, width, inner, number = 12, 3, 256, 512, FORMATS[kind].id
    parts = [
        (number, arranged(number, random_weights(seed, kind, count * rows, columns), columns, rows), rows)
        for seed, rows, columns in ((1, inner, width), (2, inner, width), (3, width, inner))
    ]
    experts = _native.Experts(POOLS[2], count, used, width, *parts)
    logits = (rng.standard_normal((n, count)) * 2).astype(np.float32)
    x, y = rng.standard_normal((2, n, width)).astype(np.float32)

    def outputs():
        out = y.copy()
        experts.add_to(logits, x, out)
        return out

    same(outputs)
    probability = np.exp(logits - logits.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    alone = np.zeros((n, width), np.float32)
    for i in range(n):
        chosen = np.argsort(-probability[i])[:used]
        weights = probability[i, chosen] / probability[i, chosen].sum()
        for expert, weight in zip(chosen, weights, strict=True):
            gate_up, out = np.zeros((1, 2 * inner), np.float32), np.zeros((1, width), np.float32)
            own = [(number, blocks.reshape(count, -1)[expert], rows) for _, blocks, rows in parts]
            _native.Projection(POOLS[1], width, own[:2]).apply(x[i : i + 1], gate_up)
            gated = np.zeros((1, inner), np.float32)
            _native.swiglu(POOLS[1], gate_up, gated)
            _native.Projection(POOLS[1], inner, own[2:]).apply(gated, out)
            alone[i] += np.float32(weight) * out[0]
    near = np.abs(outputs() - (y + alone)).max() / np.abs(alone).max()
    assert near < 1e-5, "the same products, summed up"


@pytest.mark.parametrize("kind", ["Q4_K", "IQ4_XS"])
def test_experts_of_several_spans_have_the_bits_of_each(kind):
    """IQ4_XS has panels, for eight rows of an expert and more: rows of different sequences do not add up to them."""
    rng = np.random.default_rng(8)
    count, used, width, inner, number = 2, 2, 256, 256, FORMATS[kind].id
    parts = [
        (number, arranged(number, random_weights(seed, kind, count * rows, columns), columns, rows), rows)
        for seed, rows, columns in ((1, inner, width), (2, inner, width), (3, width, inner))
    ]
    experts = _native.Experts(POOLS[2], count, used, width, *parts)
    logits = rng.standard_normal((24, count)).astype(np.float32)
    x, y = rng.standard_normal((2, 24, width)).astype(np.float32)
    for span in (12, 4, 1):
        together, alone = y.copy(), y.copy()
        experts.add_to(logits, x, together, span)
        for at in range(0, 24, span):
            part = slice(at, at + span)
            experts.add_to(logits[part], x[part], alone[part])
        assert np.array_equal(together.view(np.uint32), alone.view(np.uint32))
    whole = y.copy()
    experts.add_to(logits, x, whole)
    assert np.array_equal(whole, alone) == (kind == "Q4_K")


def test_a_bias_is_added_before_the_residual():
    rng = np.random.default_rng(4)
    weights = (rng.standard_normal((8, 32)) * 0.1).astype(np.float16)
    bias, x, y = (rng.standard_normal(shape).astype(np.float32) for shape in (8, (3, 32), (3, 8)))
    plain, added = np.zeros((3, 8), np.float32), y.copy()
    parts = [(1, weights.view(np.uint8).reshape(-1), 8)]
    _native.Projection(POOLS[1], 32, parts).apply(x, plain)
    _native.Projection(POOLS[1], 32, parts, bias).add_to(x, added, factor=0.25)
    assert np.array_equal(added, y + (plain + bias) * np.float32(0.25))
    with pytest.raises(ValueError, match="a bias is not as wide"):
        _native.Projection(POOLS[1], 32, parts, bias[:7])


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
