"""The sampler as the engine and a grammar use it."""

import math
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from bankml import _native
from bankml.errors import BankmlError, RequestError
from bankml.sampling.chain import SamplerChain
from bankml.sampling.logprobs import chain_probs, token_probs
from bankml.sampling.parameters import RANDOM_SEED, SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary, decode_bytewise

N = 50
VOCABULARY = SamplerVocabulary(N, lambda text: [ord(c) for c in text], lambda: [b"%d" % i for i in range(N)])
PLAIN = SamplingParams(seed=3, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def logits(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, N).astype(np.float32)


def test_a_second_draw_goes_on_with_the_same_generator() -> None:
    """What a grammar does: the token breaks it, the raw logits are masked, the chain runs again."""
    row = logits()
    before = row.copy()
    first = SamplerChain(PLAIN, VOCABULARY)
    generator = _native.Mt19937(3)

    def chosen(weights: np.ndarray) -> int:
        shares = np.exp(weights - weights.max(), dtype=np.float64)
        return int(np.searchsorted(np.cumsum(shares), shares.sum() * generator.unit_double()))

    token = first.sample(row)
    assert token == chosen(row)
    masked = row.copy()
    masked[token] = -np.inf
    again = first.sample(masked)
    assert again == chosen(masked) != token
    assert (row == before).all()


def test_greedy_takes_the_first_of_the_highest() -> None:
    row = np.zeros(N, dtype=np.float32)
    row[[7, 9]] = 1.0
    for params in (replace(PLAIN, temperature=0.0), replace(SamplingParams(), temperature=0.0)):
        assert SamplerChain(params, VOCABULARY).sample(row) == 7


def test_a_random_seed_is_one_that_can_be_given_again() -> None:
    one, other = (
        SamplerChain(replace(PLAIN, seed=RANDOM_SEED), VOCABULARY),
        SamplerChain(replace(PLAIN, seed=RANDOM_SEED), VOCABULARY),
    )
    assert one.seed != other.seed
    again = SamplerChain(replace(PLAIN, seed=one.seed), VOCABULARY)
    assert [one.sample(logits(i)) for i in range(30)] == [again.sample(logits(i)) for i in range(30)]


def test_the_prompt_counts_for_penalties() -> None:
    row = np.zeros(N, dtype=np.float32)
    row[[7, 9]] = 2.0, 1.5
    sampler = SamplerChain(replace(PLAIN, temperature=0.0, repeat_penalty=2.0, repeat_last_n=2), VOCABULARY)
    sampler.accept_all([7])
    assert sampler.sample(row) == 9
    sampler.accept(1)
    sampler.accept(1)
    assert sampler.sample(row) == 7


def test_banned_and_suppressed_tokens_are_never_drawn() -> None:
    row = logits()
    best = int(row.argmax())
    banned = replace(PLAIN, temperature=0.0, logit_bias=((best, -math.inf),))
    assert SamplerChain(banned, VOCABULARY).sample(row) != best
    assert SamplerChain(replace(PLAIN, temperature=0.0, suppressed=(best, 10**6)), VOCABULARY).sample(row) != best


def test_a_window_of_two_billion_tokens_costs_nothing() -> None:
    params = replace(
        PLAIN, repeat_penalty=1.1, repeat_last_n=2**31 - 1, dry_multiplier=1.0, dry_penalty_last_n=2**31 - 1
    )
    sampler = SamplerChain(params, VOCABULARY)
    sampler.accept_all([1, 2, 1])
    assert 0 <= sampler.sample(logits()) < N


def test_wrong_logits() -> None:
    sampler = SamplerChain(PLAIN, VOCABULARY)
    with pytest.raises(BankmlError, match="expected logits of shape"):
        sampler.sample(np.zeros(N - 1, dtype=np.float32))
    row = logits()
    row[3] = np.nan
    with pytest.raises(BankmlError, match="not a number") as failed:
        sampler.sample(row)
    assert failed.value.status == 500
    with pytest.raises(BankmlError, match="not a number"):
        token_probs(row, 0, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"logit_bias": ((0, 3e38), (0, 3e38), (0, -math.inf))},
        {"repeat_penalty": 3e38, "frequency_penalty": -3e38, "repeat_last_n": 9},
        {"dry_multiplier": -3e38, "dry_base": 3e38, "dry_allowed_length": 0, "logit_bias": ((1, -math.inf),)},
    ],
)
def test_parameters_that_overflow_are_the_requests_fault(changes: dict) -> None:
    """Not a number has no order: libstdc++'s sort could leave its bounds. It never gets there."""
    sampler = SamplerChain(replace(PLAIN, **changes), VOCABULARY)
    sampler.accept_all([1, 1, 1, 1])
    row = logits()
    row[1] = -3e38
    with pytest.raises(RequestError, match="left a logit that is not a number"):
        sampler.sample(row)


def test_infinite_logits_break_nothing() -> None:
    for name in ("top_k", "top_p", "min_p", "typ_p", "xtc", "top_n_sigma", "temperature"):
        params = replace(PLAIN, top_k=9, top_p=0.5, min_p=0.1, typical_p=0.5, xtc_probability=1.0, top_n_sigma=1.0)
        params = replace(params, samplers=(name, "top_p", name), temperature=0.5, dynatemp_range=0.4)
        for row in (np.full(N, -np.inf), np.full(N, np.inf), np.repeat([np.inf, -np.inf], N // 2)):
            assert 0 <= SamplerChain(params, VOCABULARY).sample(row.astype(np.float32)) < N


def test_the_generator_of_each_sampler_starts_from_the_seed() -> None:
    """XTC draws from its own, so that switching it on does not move the draws of the sampler that chooses."""
    row = np.zeros(N, dtype=np.float32)
    plain, with_xtc = SamplerChain(PLAIN, VOCABULARY), SamplerChain(replace(PLAIN, xtc_probability=1e-9), VOCABULARY)
    assert [plain.sample(row) for _ in range(20)] == [with_xtc.sample(row) for _ in range(20)]


def test_probabilities_the_chain_left() -> None:
    sampler = SamplerChain(replace(PLAIN, top_k=4), VOCABULARY)
    token = sampler.sample(logits())
    probs = chain_probs(sampler.native, token, 10)
    assert len(probs.top) == 4
    assert dict(probs.top)[token] == probs.value
    assert sum(p for _, p in probs.top) == pytest.approx(1.0)
    assert not probs.logarithmic


def test_top_logprobs_of_an_impossible_token_are_the_lowest_float() -> None:
    row = np.array([1.0, -np.inf], dtype=np.float32)
    probs = token_probs(row, 1, 2)
    assert probs.top == ((0, 0.0), (1, float(np.finfo(np.float32).min)))
    assert probs.value == float(np.finfo(np.float32).min)


def test_breakers_are_searched_for_once() -> None:
    calls = []

    def texts() -> list[bytes]:
        calls.append(1)
        return [b"a", b"xa", b"ab", b"b", b""]

    vocabulary = SamplerVocabulary(5, lambda text: [{"a": 0, "b": 3}[c] for c in text], texts)
    assert not calls
    found = vocabulary.breakers(("ab", ""))
    assert vocabulary.breakers(("ab", "")) is found
    assert len(found) == 3  # "ab"; "a" and "xa" before "b"
    assert len(vocabulary.breakers(("",))) == 0
    assert calls == [1]


def test_text_cut_inside_a_character() -> None:
    replacement = "\N{REPLACEMENT CHARACTER}"
    assert decode_bytewise("aé".encode()) == "aé"
    assert decode_bytewise("é日".encode()[1:-1]) == replacement * 3
    assert decode_bytewise(b"") == ""


def test_other_threads_run_while_it_samples() -> None:
    n = 2_000_000
    vocabulary = SamplerVocabulary(n, lambda text: [], lambda: [])
    row = np.random.default_rng(0).normal(0, 3, n).astype(np.float32)
    sampler = SamplerChain(replace(PLAIN, top_p=0.999999), vocabulary)
    done = threading.Event()

    def work() -> None:
        sampler.sample(row)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while not done.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 10
