"""Every sampler alone and together against llama.cpp's own code: the same tokens, and the same bits left behind."""

import numpy as np
import pytest

from tests.sampling import cases
from tests.sampling.native import sampler
from tests.sampling.reference import ReferenceSampler, load

pytestmark = pytest.mark.oracle

SIZES = (1, 2, 3, 17, 100, 128, 129, 500, 1024, 1025, 3000)
LARGE = 151_669


@pytest.fixture(scope="module")
def lib():
    return load()


def compare(lib, case: cases.Case, rows: list[np.ndarray]) -> None:
    n = len(rows[0])
    reference = ReferenceSampler(lib, case.params, n, case.breakers)
    ours = sampler(case, n)
    for token in case.history:
        reference.accept(token)
    for row in rows:
        want, left = reference.apply(row)
        assert ours.sample(row) == want, case
        ids, logits, probabilities = ours.native.candidates()
        assert ids.tobytes() == left["id"].tobytes(), case
        assert logits.tobytes() == left["logit"].tobytes(), case
        same = (probabilities == left["p"]) | (np.isnan(probabilities) & np.isnan(left["p"]))
        assert same.all(), case
        reference.accept(want)
        ours.accept(want)


def rows_of(r: np.random.Generator, case: cases.Case, n: int) -> list[np.ndarray]:
    return [cases.logits(r, n) for _ in range(case.draws)]


@pytest.mark.parametrize("name", cases.ALONE)
@pytest.mark.parametrize("n", SIZES)
def test_alone(lib, name: str, n: int) -> None:
    for i in range(25):
        r = np.random.default_rng([n, i, len(name)])
        case = cases.alone(name, r, n)
        compare(lib, case, rows_of(r, case, n))


@pytest.mark.parametrize("n", SIZES)
def test_combined(lib, n: int) -> None:
    for i in range(300):
        r = np.random.default_rng([n, i])
        case = cases.combined(r, n)
        compare(lib, case, rows_of(r, case, n))


@pytest.mark.parametrize("name", [*cases.ALONE, "combined"])
def test_large_vocabulary(lib, name: str) -> None:
    for i in range(6):
        r = np.random.default_rng([LARGE, i])
        case = cases.combined(r, LARGE) if name == "combined" else cases.alone(name, r, LARGE)
        compare(lib, case, rows_of(r, case, LARGE)[:1])
