"""Every weight type: the reference's recorded bits, instruction sets equal to the definition, spans and mixtures."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml import _native
from bankml.gguf.block_types import BLOCK_TYPES
from tests.model.test_kernels import POOLS, same, with_kernels
from tests.model.weight_blocks import FORMATS, arranged, product, random_rows, random_weights, widened

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "model" / "weight_types.json").read_text())
types = pytest.mark.parametrize("name", FORMATS)
BLOCKED = [name for name, one in FORMATS.items() if one.block_weights > 1]


def digest(array: np.ndarray) -> str:
    return sha256(array.tobytes()).hexdigest()[:16]


def test_the_table_agrees_with_the_file_formats():
    for one in FORMATS.values():
        described = BLOCK_TYPES[one.id]
        assert (described.name, described.weights, described.size) == (one.name, one.block_weights, one.block_bytes)
    assert [one.id for one in FORMATS.values()] == sorted(one.id for one in FORMATS.values())


@pytest.mark.parametrize("kernel_set", _native.kernel_sets())
@types
def test_recorded_products(name, kernel_set):
    """Made by scripts/record_weight_types.py with the reference's own libraries."""
    wrong = []
    for case, want in RECORDED[name].items():
        rows, columns, n = map(int, case.split("x"))
        weights = random_weights(rows + columns, name, rows, columns)
        if n == 0:
            got = digest(widened(name, weights, columns))
        else:
            x = random_rows(n, n, columns)
            got = digest(with_kernels(kernel_set, lambda w=weights, a=x: product(POOLS[2], name, w, a)))
        if got != want:
            wrong.append(case)
    assert not wrong


@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from(list(FORMATS)), st.integers(1, 70), st.integers(1, 3), st.integers(1, 19), st.booleans(),
    st.integers(0, 2**31),
)  # fmt: skip
def test_every_instruction_set_computes_the_definition(name, rows, groups, n, hard, seed):
    columns = groups * (256 if FORMATS[name].row_multiple == 256 else 128)
    weights, x = random_weights(seed, name, rows, columns, hard), random_rows(seed, n, columns)
    with np.errstate(all="ignore"):
        # NaNs are equal whatever their payload: which operand's survives is the compiler's choice.
        same(lambda: np.nan_to_num(product(POOLS[2], name, weights, x), nan=7.0, posinf=np.inf, neginf=-np.inf))


@types
@pytest.mark.parametrize("rows", [1, 31, 32, 70, 96])
def test_arranged_rows_are_the_files(name, rows):
    """Two matrices one behind the other: as many bytes, and the rows that the file's order gives."""
    columns, one = 512, FORMATS[name]
    both = random_weights(rows, name, 2 * rows, columns)
    data = arranged(one.id, both, columns, rows)
    assert data.size == both.size and (one.arranged and rows >= 32) != np.array_equal(data, both.reshape(-1))
    for matrix, weights in zip(data.reshape(2, -1), both.reshape(2, rows, -1), strict=True):
        got, want = np.zeros((rows, columns), np.float32), np.zeros(rows * columns, np.float32)
        _native.Embedding(one.id, columns, np.ascontiguousarray(matrix)).look_up(np.arange(rows, dtype=np.int32), got)
        _native.dequantize(one.id, np.ascontiguousarray(weights).reshape(-1), want)
        assert np.array_equal(got.reshape(-1).view(np.uint32), want.view(np.uint32))


def test_rows_that_do_not_fit_are_not_arranged():
    kind, data = FORMATS["Q2_0"].id, np.zeros(32 * 18, np.uint8)
    for columns, rows in ((64, 0), (64, 31), (65, 32)):
        with pytest.raises(ValueError, match="a matrix's"):
            _native.arrange(kind, columns, rows, data)
    with pytest.raises(TypeError):
        _native.arrange(kind, 64, 32, bytes(data))


@types
def test_products_are_near_the_widened_ones(name):
    weights, x = random_weights(3, name, 48, 1024), random_rows(4, 10, 1024)
    for n in (1, 10):
        want = x[:n].astype(np.float64) @ widened(name, weights, 1024).astype(np.float64).T
        assert np.abs(product(POOLS[1], name, weights, x[:n]) - want).max() < 0.03 * np.abs(want).max()


@types
@pytest.mark.parametrize("rows", [64, 60])
def test_rows_of_several_sequences_have_the_bits_of_each_alone(name, rows):
    """Only the rows that a sequence has in its own micro-batch choose the product, not those computed beside them."""
    weights, x = random_weights(5, name, rows, 512), random_rows(6, 24, 512)
    for span in (1, 2, 3, 8, 12):
        together = product(POOLS[2], name, weights, x, span)
        alone = [product(POOLS[2], name, weights, x[i : i + span]) for i in range(0, 24, span)]
        assert np.array_equal(together.view(np.uint32), np.concatenate(alone).view(np.uint32)), span


def test_a_projection_may_mix_types():
    x = random_rows(7, 9, 512)
    matrices = {name: random_weights(8, name, 40, 512) for name in FORMATS}
    y = np.zeros((9, 40 * len(FORMATS)), np.float32)
    parts = [(FORMATS[name].id, arranged(FORMATS[name].id, weights, 512), 40) for name, weights in matrices.items()]
    for pool in POOLS.values():
        _native.Projection(pool, 512, parts).apply(x, y)
        for i, (name, weights) in enumerate(matrices.items()):
            mine = np.ascontiguousarray(y[:, i * 40 : i * 40 + 40])
            assert np.array_equal(mine.view(np.uint32), product(pool, name, weights, x).view(np.uint32)), name


@pytest.mark.parametrize("name", BLOCKED)
def test_rows_that_are_not_whole_blocks_are_refused(name):
    one = FORMATS[name]
    with pytest.raises(ValueError, match="not whole blocks"):
        _native.Projection(POOLS[1], one.row_multiple + 1, [(one.id, np.zeros(one.block_bytes, np.uint8), 1)])
    with pytest.raises(ValueError, match="not whole blocks"):
        _native.Embedding(one.id, one.block_weights + 1, np.zeros(one.block_bytes, np.uint8))


def test_a_number_that_is_no_type_is_refused():
    with pytest.raises(ValueError, match="no such weight type"):
        _native.Embedding(4, 32, np.zeros(32, np.uint8))
    with pytest.raises(ValueError, match="not whole spans"):
        product(POOLS[1], "F16", random_weights(1, "F16", 4, 64), random_rows(1, 4, 64), 3)
