"""The operations of embedding models against the reference build's own, bit for bit."""

import numpy as np
import pytest

from bankml import _native
from bankml.model.kv_cache import everything_visible
from tests.ggml import F32, Ggml
from tests.model.test_kernels_oracle import assert_same_bits, kernel_set  # noqa: F401 - a fixture

pytestmark = pytest.mark.oracle


@pytest.fixture
def ggml():
    context = Ggml()
    yield context
    context.close()


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("width", [1, 7, 8, 64, 100, 384, 1001])
def test_layer_norm(kernel_set, ggml, width):  # noqa: F811
    x, weight, bias = normal(3, width) * 3 + 1, normal(width, seed=1), normal(width, seed=2)
    ours = x.copy()
    _native.layer_norm(_native.Pool(2), ours, weight, bias, 1e-12, ours)
    assert_same_bits(ours, ggml.layer_norm(x, weight, bias, 1e-12))


def test_gelu_over_every_half_and_between(kernel_set, ggml):  # noqa: F811
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    x = np.concatenate([halves[np.isfinite(halves)], np.linspace(-11, 11, 30001, dtype=np.float32)])[None]
    ours = x.copy()
    _native.gelu(_native.Pool(1), ours)
    assert_same_bits(ours, ggml.unary("gelu", x))


@pytest.mark.parametrize("n", [*range(1, 20), 31, 32, 33, 40, 63, 64, 65, 95, 97, 127, 150, 512])
def test_mean_of_rows(ggml, n):
    x = normal(n, 48, seed=n)
    ours = np.zeros(48, np.float32)
    _native.mean_of_rows(x, ours)
    share = np.full((1, n), np.float32(1) / np.float32(n), np.float32)
    assert_same_bits(ours[None], ggml.mul_mat(F32, np.ascontiguousarray(x.T), 48, n, share))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 11, 32])
def test_softmax_and_tanh(ggml, n):
    x = normal(1, n, seed=n) * 3
    ours, other = x[0].copy(), x.copy()
    _native.softmax(ours)
    assert_same_bits(ours[None], ggml.unary("soft_max", x))
    _native.softcap(_native.Pool(1), other, 1.0)
    assert_same_bits(other, ggml.unary("tanh", x))


@pytest.mark.parametrize("n", [1, 2, 9, 63, 64, 65, 100, 128, 300])
def test_attention_to_all_tokens(kernel_set, ggml, n):  # noqa: F811
    heads, size = 3, 32
    qkv = normal(n, 3 * heads * size, seed=n)
    shape = _native.AttentionShape(heads, heads, size, 0.25, 512, 2)
    k, v = np.zeros((2, heads, 512, size), np.uint16)
    ours, rows = np.zeros((n, heads * size), np.float32), everything_visible(n)
    _native.attend(_native.Pool(2), shape, qkv, rows.position, k, v, ours, rows.places, rows.positions)
    q = np.ascontiguousarray(qkv.reshape(n, 3, heads, size)[:, 0].transpose(1, 0, 2))
    mask = np.zeros((n, n), np.uint16)
    stored = (np.ascontiguousarray(cache[:, :n]) for cache in (k, v))
    assert_same_bits(ours, ggml.attention(q, *stored, mask, 0.25).reshape(n, -1))
