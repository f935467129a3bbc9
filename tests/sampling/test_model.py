"""The native chain against a plain Python model of it, over random logits and parameters, ties included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.sampling.logprobs import token_probs
from tests.sampling import cases, libstdcxx
from tests.sampling.model_chain import ModelChain
from tests.sampling.native import sampler

SIZES = st.sampled_from([1, 2, 3, 16, 17, 40, 129, 200])
SEEDS = st.integers(0, 2**32 - 1)


def compare(case: cases.Case, rows: list[np.ndarray]) -> None:
    n = len(rows[0])
    model = ModelChain(case, n)
    ours = sampler(case, n)
    for row in rows:
        want = model.sample(row)
        assert ours.sample(row) == want
        ids, logits, _ = ours.native.candidates()
        assert ids.tolist() == [token.id for token in model.tokens]
        assert logits.tobytes() == np.array([token.logit for token in model.tokens], dtype=np.float32).tobytes()
        model.accept(want)
        ours.accept(want)


@pytest.mark.parametrize("name", cases.ALONE)
@settings(max_examples=60, deadline=None)
@given(n=SIZES, seed=SEEDS)
def test_one_sampler(name: str, n: int, seed: int) -> None:
    r = np.random.default_rng(seed)
    case = cases.alone(name, r, n)
    compare(case, [cases.logits(r, n) for _ in range(case.draws)])


@settings(max_examples=500, deadline=None)
@given(n=SIZES, seed=SEEDS)
def test_combined(n: int, seed: int) -> None:
    r = np.random.default_rng(seed)
    case = cases.combined(r, n)
    compare(case, [cases.logits(r, n) for _ in range(case.draws)])


@pytest.mark.parametrize("name", ["top_p", "min_p", "top_k", "typ_p"])
def test_longer_than_1024(name: str) -> None:
    """From 1,025 candidates on, top-p sorts in parts."""
    for seed in range(6):
        r = np.random.default_rng(seed)
        case = cases.alone(name, r, 1100)
        compare(case, [cases.logits(r, 1100)])


@settings(max_examples=60, deadline=None)
@given(n=SIZES, seed=SEEDS)
def test_token_probabilities(n: int, seed: int) -> None:
    r = np.random.default_rng(seed)
    row = cases.logits(r, n)
    if np.isneginf(row).all():
        row[0] = 0.0
    n_top, chosen = int(r.choice([0, 1, 3, 20, 500])), int(r.integers(n))
    probs = token_probs(row, chosen, n_top)

    order = list(range(n))
    libstdcxx.partial_sort(order, min(n_top, n), lambda a, b: bool(row[a] > row[b]))
    assert [token for token, _ in probs.top] == order[:n_top]
    from tests.sampling.model_chain import F, expf, logf

    shares = [expf(row[token] - row.max()) for token in order]
    total = F(0)
    for share in shares:
        total += share
    logs = [float(logf(share / total)) if share / total else float(np.finfo(F).min) for share in shares]
    assert [value for _, value in probs.top] == logs[:n_top]
    assert probs.value == logs[order.index(chosen)]
    assert probs.token == chosen
