"""Every quantizer and dequantizer against the reference build, bit for bit."""

import ctypes

import numpy as np
import pytest

from bankml.convert.dequantize import dequantize
from bankml.convert.halves import to_f16
from bankml.convert.quantize import quantize
from bankml.gguf.block_types import BF16, BLOCK_TYPES, F16, Q1_0, Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0
from tests import oracle

pytestmark = pytest.mark.oracle
BLOCKS = 4096


@pytest.fixture(scope="module")
def ggml():
    return ctypes.CDLL(str(oracle.find("libggml-base.so")))


def random_floats(n):
    """Ordinary weights, with every awkward float among them."""
    rng = np.random.default_rng(7)
    values = rng.standard_normal(n).astype(np.float32) * np.exp(rng.uniform(-30, 12, n)).astype(np.float32)
    odd = np.array(
        [0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-40, 65519.9, 65520, 3e38, 2.0**-24, 2.0**-25], np.float32
    )
    at = rng.integers(0, n, n // 97)
    values[at] = rng.choice(odd, len(at))
    values[: n // 8] = rng.standard_normal(n // 8).astype(np.float32)
    values[n // 8 : n // 8 + 256] = 0
    values[n // 8 + 256 : n // 8 + 512] = rng.choice(np.array([1e-45, -1e-45, 1e-39], np.float32), 256)
    return values


def same_bits(ours, theirs):
    """Equal bits; two NaNs count as equal, since an addition of two leaves the sign and payload to the compiler."""
    both_nan = np.isnan(ours) & np.isnan(theirs)
    np.testing.assert_array_equal(
        np.where(both_nan, 0, ours.view(np.uint32)), np.where(both_nan, 0, theirs.view(np.uint32))
    )


@pytest.mark.parametrize("type_", [F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q1_0, Q2_0], ids=lambda t: t.name)
def test_dequantizers(ggml, type_):
    raw = np.random.default_rng(type_.id).integers(0, 256, BLOCKS * type_.size, np.uint8)
    theirs = np.empty(BLOCKS * type_.weights, np.float32)
    name = {"F16": "ggml_fp16_to_fp32_row", "BF16": "ggml_bf16_to_fp32_row"}.get(
        type_.name, f"dequantize_row_{type_.name.lower()}"
    )
    getattr(ggml, name)(
        raw.ctypes.data_as(ctypes.c_void_p), theirs.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(theirs.size)
    )
    same_bits(dequantize(raw.tobytes(), type_), theirs)


@pytest.mark.parametrize("type_", [Q1_0, Q2_0], ids=lambda t: t.name)
def test_quantizers(ggml, type_):
    values = random_floats(BLOCKS * type_.weights)
    theirs = np.empty(BLOCKS * type_.size, np.uint8)
    function = getattr(ggml, f"quantize_row_{type_.name.lower()}_ref")
    function(
        values.ctypes.data_as(ctypes.c_void_p), theirs.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(values.size)
    )
    np.testing.assert_array_equal(quantize(values, type_).reshape(BLOCKS, -1), theirs.reshape(BLOCKS, -1))


EXTREMES = (0, -0.0, 1e-45, -1e-45, 1e-39, -1e-39, 3e-38, 0.5, -0.5, 1, -1, 65504, -65504, 1e30, -1e30, 1e37)


def rows_of_32(n):
    """Finite rows: ordinary, of ties, of extremes, of one magnitude with both signs, of either zero, of subnormals."""
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((n, 32)).astype(np.float32) * np.exp(rng.uniform(-88, 10, (n, 1))).astype(np.float32)
    part = n // 8
    rows[:part] = rng.integers(-16, 17, (part, 32)) / np.float32(2)
    rows[part : 2 * part] = rng.choice(np.array(EXTREMES, np.float32), (part, 32))
    rows[2 * part : 3 * part] = rng.choice(np.array([-1, 1], np.float32), (part, 32)) * rows[2 * part : 3 * part, :1]
    rows[3 * part : 3 * part + 64] = rng.choice(np.array([0, -0.0, 1], np.float32), (64, 32))
    rows[3 * part + 64 : 3 * part + 128] = rng.choice(np.array([0, -0.0], np.float32), (64, 32))
    subnormal = rng.integers(0, 1 << 24, (part, 32)) >> rng.integers(0, 24, (part, 1))
    signs = rng.integers(0, 2, (part, 32)) << 31
    rows[4 * part : 5 * part] = (subnormal | signs).astype(np.uint32).view(np.float32)
    return np.ascontiguousarray(rows)


@pytest.mark.parametrize("type_", [BF16, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0], ids=lambda t: t.name)
def test_quantizers_of_finite_rows(ggml, type_):
    rows = rows_of_32(1 << 17)
    theirs = np.empty((len(rows), type_.nbytes(32)), np.uint8)
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    written = ggml.ggml_quantize_chunk(
        ctypes.c_int(type_.id), rows.ctypes.data_as(ctypes.c_void_p), theirs.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(0), ctypes.c_int64(len(rows)), ctypes.c_int64(32), None,
    )  # fmt: skip
    assert written == theirs.size
    np.testing.assert_array_equal(quantize(rows.reshape(-1), type_).reshape(theirs.shape), theirs)


@pytest.mark.parametrize("type_", [BLOCK_TYPES[number] for number in (12, 13, 14)], ids=lambda t: t.name)
def test_quantizers_of_k_types(ggml, type_):
    """Rows of one kind, of mixed kinds, and ordinary weights; finite, and of magnitudes that convert accepts."""
    rng = np.random.default_rng(13)
    odd = rows_of_32(1 << 14)
    odd[np.abs(odd) > 65504] = 1
    ordinary = (rng.standard_normal(1 << 19) / 20).astype(np.float32)
    values = np.concatenate([odd.reshape(-1), odd[rng.permutation(len(odd))].reshape(-1), ordinary])
    theirs = np.empty((values.size // 256, type_.size), np.uint8)
    written = ggml.ggml_quantize_chunk(
        ctypes.c_int(type_.id), values.ctypes.data_as(ctypes.c_void_p), theirs.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(0), ctypes.c_int64(len(theirs)), ctypes.c_int64(256), None,
    )  # fmt: skip
    assert written == theirs.size
    np.testing.assert_array_equal(quantize(values, type_).reshape(theirs.shape), theirs)


def test_f16_rounding(ggml):
    values = random_floats(1 << 18)
    theirs = np.empty(values.size, np.uint16)
    ggml.ggml_fp32_to_fp16_row(
        values.ctypes.data_as(ctypes.c_void_p), theirs.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(values.size)
    )
    np.testing.assert_array_equal(to_f16(values), theirs)


def test_table(ggml):
    ggml.ggml_type_name.restype = ctypes.c_char_p
    ggml.ggml_type_size.restype = ctypes.c_size_t
    ggml.ggml_blck_size.restype = ctypes.c_int64
    for number in range(43):
        row = BLOCK_TYPES.get(number)
        theirs = (ggml.ggml_blck_size(number), ggml.ggml_type_size(number))
        assert theirs == ((row.weights, row.size) if row else (0, 0))
        assert row is None or ggml.ggml_type_name(number).decode().lower() == row.name.lower()
