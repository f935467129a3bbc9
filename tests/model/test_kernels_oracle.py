"""Every native operation against the reference build's own, bit for bit."""

import numpy as np
import pytest

from bankml import _native
from tests.ggml import F16, NEOX, NORMAL, Ggml, library
from tests.model.weight_blocks import arranged

pytestmark = pytest.mark.oracle
KERNELS = _native.kernel_sets()


@pytest.fixture(params=KERNELS)
def kernel_set(request):
    before = _native.kernel_set()
    _native.use_kernels(request.param)
    yield request.param
    _native.use_kernels(before)


@pytest.fixture
def ggml():
    context = Ggml()
    yield context
    context.close()


@pytest.fixture
def rng(request):
    return np.random.default_rng(abs(hash(request.node.name)) % (1 << 32))


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


def assert_same_bits(ours, theirs):
    different = np.argwhere(bits(ours) != bits(theirs))
    if len(different):
        at = tuple(different[0])
        pytest.fail(f"{len(different)} of {ours.size} differ, first at {at}: {ours[at]!r} {theirs[at]!r}")


def halves(rng, *shape, scale=0.05):
    return (rng.standard_normal(shape) * scale).astype(np.float16).view(np.uint16)


def test_f16_rounding_over_every_half(kernel_set):
    every = np.arange(65536, dtype=np.uint16)
    widened = np.zeros(65536, np.float32)
    theirs = np.zeros(65536, np.float32)
    _native.widen_f16(every, widened)
    library("ggml-cpu").ggml_cpu_fp16_to_fp32(every.ctypes.data_as(_p()), theirs.ctypes.data_as(_p()), _i64(65536))
    assert_same_bits(widened, theirs)
    # every half, its neighbours in float32, and the points half way between two halves
    raw = widened.view(np.uint32)
    near = np.concatenate([raw, raw + 1, raw - 1, raw + 0x1000, raw + 0xFFF, raw + 0x1001]).view(np.float32)
    ours, want = np.zeros(near.size, np.uint16), np.zeros(near.size, np.uint16)
    _native.round_f16(near, ours)
    library("ggml-cpu").ggml_cpu_fp32_to_fp16(near.ctypes.data_as(_p()), want.ctypes.data_as(_p()), _i64(near.size))
    assert np.array_equal(ours, want)


def _p():
    import ctypes

    return ctypes.c_void_p


def _i64(n):
    import ctypes

    return ctypes.c_int64(n)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 6, 7, 13, 64])
@pytest.mark.parametrize(
    "rows,k", [(4, 8), (12, 32), (36, 64), (40, 96), (6, 64), (3, 40), (20, 44), (64, 576), (33, 100)]
)
def test_f16_product(kernel_set, ggml, rng, rows, k, columns):
    w, x = halves(rng, rows, k), rng.standard_normal((columns, k)).astype(np.float32)
    ours = np.zeros((columns, rows), np.float32)
    _native.Projection(_native.Pool(2), k, [(1, w.reshape(-1).view(np.uint8), rows)]).apply(x, ours)
    assert_same_bits(ours, ggml.mul_mat(F16, w, rows, k, x))


@pytest.mark.parametrize("width", [8, 64, 100, 576, 1000])
@pytest.mark.parametrize("n", [1, 3])
def test_rms_norm(kernel_set, ggml, rng, width, n):
    x, weight = rng.standard_normal((n, width)).astype(np.float32) * 3, rng.standard_normal(width).astype(np.float32)
    ours = np.zeros_like(x)
    _native.rms_norm(_native.Pool(2), x, weight, 1e-5, ours)
    assert_same_bits(ours, ggml.rms_norm(x, weight, 1e-5))


def test_swiglu_over_a_sweep(kernel_set, ggml):
    gate = np.linspace(-120, 120, 48001, dtype=np.float32)[None]
    up = np.full_like(gate, 1.25)
    ours = np.zeros_like(gate)
    _native.swiglu(_native.Pool(1), np.concatenate([gate, up], axis=1), ours)
    assert_same_bits(ours, ggml.swiglu(gate, up))


def test_geglu_over_every_half_and_between(kernel_set, ggml):
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    gate = np.concatenate([halves[np.isfinite(halves)], np.linspace(-11, 11, 30001, dtype=np.float32)])[None]
    up = np.full_like(gate, 1.25)
    ours = np.zeros_like(gate)
    _native.geglu(_native.Pool(1), np.concatenate([gate, up], axis=1), ours)
    assert_same_bits(ours, ggml.geglu(gate, up))


@pytest.mark.parametrize("yarn", [False, True])
def test_rope_with_factors(kernel_set, ggml, rng, yarn):
    n, heads, size, first = 5, 3, 64, 1234
    x = rng.standard_normal((n, heads, size)).astype(np.float32)
    factors = (1 + 3 * rng.random(size // 2)).astype(np.float32)
    shape = (
        _native.rope_yarn(size, 1e6, 4.0, 256, 1.19, 24.0, 2.0, 1.0, factors)
        if yarn
        else _native.rope_plain(size, 1e6, 1.0, 1.0, factors)
    )
    table, ours = np.zeros((n, size), np.float32), x.reshape(n, -1).copy()
    _native.rope_table(shape, first, table)
    _native.rope_rotate(_native.Pool(2), table, True, heads, size, ours)
    # With a multiplier of 1 the two magnitudes of the parameters cancel out.
    magnitude = np.float32(1) / (np.float32(1) + np.float32(0.1) * np.log(np.float32(4.0))) * np.float32(1.19)
    positions = np.arange(first, first + n)
    scaled = (256, 0.25, float(magnitude)) if yarn else None
    theirs = ggml.rope(x, positions, NEOX, 1e6, scaled, factors, (24.0, 2.0))
    assert_same_bits(ours.reshape(x.shape), theirs)


@pytest.mark.parametrize("mode", [NORMAL, NEOX])
@pytest.mark.parametrize("yarn", [False, True])
@pytest.mark.parametrize("head_size", [64, 80, 128])
def test_rope(kernel_set, ggml, rng, mode, yarn, head_size):
    n, heads, first = 5, 3, 1234
    x = rng.standard_normal((n, heads, head_size)).astype(np.float32)
    factor, original = 4.0, 8192
    shape = (
        _native.rope_yarn(head_size, 1e6, factor, original, 1.0) if yarn else _native.rope_plain(head_size, 1e6, 1.0)
    )
    table, ours = np.zeros((n, head_size), np.float32), x.reshape(n, -1).copy()
    _native.rope_table(shape, first, table)
    _native.rope_rotate(_native.Pool(2), table, mode == NEOX, heads, head_size, ours)
    magnitude = np.float32(0.1) * np.log(np.float32(factor)) + np.float32(1)
    magnitude *= np.float32(1) / (np.float32(1) + np.float32(0.1) * np.log(np.float32(factor)))
    theirs = ggml.rope(
        x, np.arange(first, first + n), mode, 1e6, (original, 1 / factor, float(magnitude)) if yarn else None
    )
    assert_same_bits(ours.reshape(x.shape), theirs)


@pytest.mark.parametrize("head_size", [64, 96, 128])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "n,position", [(1, 0), (1, 200), (1, 511), (1, 700), (2, 30), (63, 5), (64, 0), (64, 300), (70, 10), (200, 600)]
)
def test_attention(kernel_set, rng, head_size, threads, n, position):
    if kernel_set == "portable" and n * (position + n) > 20000:
        pytest.skip("the definition is slow; the other sets are compared at this size")
    heads, kv_heads, cells = 6, 2, 1024
    seen = -(-(position + n) // 256) * 256
    k, v = halves(rng, kv_heads, cells, head_size, scale=1.0), halves(rng, kv_heads, cells, head_size, scale=1.0)
    qkv = rng.standard_normal((n, (heads + 2 * kv_heads) * head_size)).astype(np.float32)
    qkv[:, : heads * head_size] *= 2
    scale = float(np.float32(1) / np.sqrt(np.float32(head_size)))
    out = np.zeros((n, heads * head_size), np.float32)
    _native.attend(
        _native.Pool(2),
        _native.AttentionShape(heads, kv_heads, head_size, scale, cells, threads),
        qkv,
        position,
        k,
        v,
        out,
    )
    fresh = qkv[:, heads * head_size :].astype(np.float16).view(np.uint16).reshape(n, 2, kv_heads, head_size)
    assert np.array_equal(k[:, position : position + n], fresh[:, 0].transpose(1, 0, 2))
    visible = np.arange(seen)[None] <= (position + np.arange(n))[:, None]
    mask = np.where(visible, 0.0, -np.inf).astype(np.float16).view(np.uint16)
    q = qkv[:, : heads * head_size].reshape(n, heads, head_size).transpose(1, 0, 2)
    ggml = Ggml(threads)
    theirs = ggml.attention(q, k[:, :seen], v[:, :seen], mask, scale)
    ggml.close()
    assert_same_bits(out.reshape(theirs.shape), theirs)


@pytest.mark.parametrize("softcap,window", [(0.0, 100), (30.0, 0), (5.0, 300)])
@pytest.mark.parametrize("n,position", [(1, 90), (1, 700), (5, 600), (67, 633)])
def test_attention_with_places(kernel_set, rng, n, position, softcap, window):
    heads, kv_heads, size, cells, threads = 4, 2, 64, 1024, 2
    order = rng.permutation(768)[: position + n].astype(np.int32)
    positions = np.full(768, -1, np.int32)
    positions[order] = np.arange(position + n)
    k, v = halves(rng, kv_heads, cells, size, scale=1.0), halves(rng, kv_heads, cells, size, scale=1.0)
    qkv = rng.standard_normal((n, (heads + 2 * kv_heads) * size)).astype(np.float32)
    out = np.zeros((n, heads * size), np.float32)
    shape = _native.AttentionShape(heads, kv_heads, size, 0.125, cells, threads, softcap, window)
    _native.attend(_native.Pool(2), shape, qkv, position, k, v, out, order[position:], positions)
    own = (position + np.arange(n))[:, None]
    visible = (positions[None] >= 0) & (positions[None] <= own) & (positions[None] > own - (window or 10**6))
    mask = np.where(visible, 0.0, -np.inf).astype(np.float16).view(np.uint16)
    q = qkv[:, : heads * size].reshape(n, heads, size).transpose(1, 0, 2)
    ggml = Ggml(threads)
    theirs = ggml.attention(q, k[:, :768], v[:, :768], mask, 0.125, softcap)
    ggml.close()
    assert_same_bits(out.reshape(theirs.shape), theirs)


Q1_0, Q2_0, Q8_0 = 41, 42, 8
BLOCK_WEIGHTS = {Q1_0: 128, Q2_0: 64}


def hard_rows(rng, n, k):
    """Activations with NaN, infinities, subnormals and whole rows of zeros among them."""
    x = rng.standard_normal((n, k)).astype(np.float32)
    x *= np.exp(rng.standard_normal((n, 1)) * 4).astype(np.float32)
    special = np.array([0, -0.0, 1e-40, -1e-44, np.inf, -np.inf, np.nan, 3e38], np.float32)
    picked = rng.random((n, k)) < (rng.random((n, 1)) < 0.3) * 0.01
    x = np.where(picked, rng.choice(special, (n, k)), x)
    x[rng.random(n) < 0.02] = 0
    return x.astype(np.float32)


def random_blocks(rng, kind, rows, k):
    blocks = rng.integers(0, 256, (rows, k // BLOCK_WEIGHTS[kind], 18), dtype=np.uint8)
    scales = (rng.standard_normal(blocks.shape[:2]) * 0.1).astype(np.float16)
    blocks[:, :, :2] = scales.view(np.uint8).reshape(*blocks.shape[:2], 2)
    return blocks


def assert_same_numbers(ours, theirs):
    """The same bits; of what is no number, only that it is none."""
    ours, theirs = ours.copy(), theirs.copy()
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    ours[np.isnan(ours)] = theirs[np.isnan(theirs)] = 0
    assert_same_bits(ours, theirs)


def test_q8_quantizer(kernel_set, rng):
    rows, k = 4000, 96
    x = hard_rows(rng, rows, k).reshape(-1)
    blocks = x.size // 32
    q, d, total = np.zeros(x.size, np.int8), np.zeros(blocks, np.float32), np.zeros(blocks, np.int32)
    with np.errstate(all="ignore"):
        _native.quantize_q8(x, q, d, total)
    theirs = np.zeros((blocks, 34), np.uint8)
    library("ggml-cpu").quantize_row_q8_0(x.ctypes.data_as(_p()), theirs.ctypes.data_as(_p()), _i64(x.size))
    assert np.array_equal(q.reshape(blocks, 32), theirs[:, 2:].view(np.int8))
    assert_same_numbers(d, theirs[:, :2].copy().view(np.float16).astype(np.float32)[:, 0])
    assert np.array_equal(total, q.reshape(blocks, 32).sum(axis=1, dtype=np.int32))
    assert (q == -128).any() and np.isnan(d).any() and (d == 0).any()


@pytest.mark.parametrize("kind", [Q1_0, Q2_0])
@pytest.mark.parametrize("columns", [1, 2, 4, 5, 9, 17, 70])
def test_quantized_product(kernel_set, ggml, rng, kind, columns):
    rows, k = 251, 384
    blocks, x = random_blocks(rng, kind, rows, k), hard_rows(rng, columns, k)
    ours = np.zeros((columns, rows), np.float32)
    _native.Projection(_native.Pool(2), k, [(kind, arranged(kind, blocks, k), rows)]).apply(x, ours)
    assert_same_numbers(ours, ggml.mul_mat(kind, blocks, rows, k, x))


@pytest.mark.parametrize("kind,symbol", [(Q1_0, "ggml_vec_dot_q1_0_q8_0"), (Q2_0, "ggml_vec_dot_q2_0_q8_0")])
def test_quantized_product_over_thousands_of_rows(kernel_set, ggml, rng, kind, symbol):
    rows, k = 4100, 256
    blocks, x = random_blocks(rng, kind, rows, k), hard_rows(rng, 3, k)
    x[0], x[1, 5] = rng.standard_normal(k), np.inf
    ours = np.zeros((3, rows), np.float32)
    _native.Projection(_native.Pool(2), k, [(kind, arranged(kind, blocks, k), rows)]).apply(x, ours)
    assert_same_numbers(ours, ggml.mul_mat(kind, blocks, rows, k, x))


@pytest.mark.parametrize("kind,symbol", [(Q1_0, "dequantize_row_q1_0"), (Q2_0, "dequantize_row_q2_0")])
def test_embedding_rows_are_the_dequantized_blocks(rng, kind, symbol):
    rows, k = 4000, 128
    blocks = random_blocks(rng, kind, rows, k)
    ours, theirs = np.zeros((rows, k), np.float32), np.zeros((rows, k), np.float32)
    _native.Embedding(kind, k, arranged(kind, blocks, k)).look_up(np.arange(rows, dtype=np.int32), ours)
    getattr(library("ggml-base"), symbol)(blocks.ctypes.data_as(_p()), theirs.ctypes.data_as(_p()), _i64(rows * k))
    assert_same_bits(ours, theirs)
