"""Every weight type beside the reference's own products, in the buffer that its loader would choose."""

import numpy as np
import pytest

from bankml import _native
from tests.ggml import Backend
from tests.model.test_kernels import POOLS
from tests.model.weight_blocks import FORMATS, product, random_rows, random_weights, widened

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def backend():
    return Backend()


@pytest.fixture(params=_native.kernel_sets(), autouse=True)
def kernel_set(request):
    before = _native.kernel_set()
    _native.use_kernels(request.param)
    yield request.param
    _native.use_kernels(before)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rows,columns", [(4096, 512), (1001, 768)])
def test_products(backend, kernel_set, name, rows, columns):
    if kernel_set == "portable":
        rows, columns = rows // 16 // 8 * 8 + rows % 8, 256
    for seed, n in enumerate((1, 2, 3, 5, 8, 13)):
        weights, x = random_weights(seed, name, rows, columns), random_rows(seed, n, columns)
        ours, theirs = product(POOLS[2], name, weights, x), backend.mul_mat(FORMATS[name].id, weights, x)
        assert np.array_equal(ours.view(np.uint32), theirs.view(np.uint32)), n


@pytest.mark.parametrize("name", FORMATS)
def test_dequantized_rows(backend, name):
    weights = random_weights(1, name, 2000, 512)
    theirs = backend.get_rows(FORMATS[name].id, weights, 512)
    assert np.array_equal(widened(name, weights, 512).view(np.uint32), theirs.view(np.uint32))
