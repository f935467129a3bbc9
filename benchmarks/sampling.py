"""What a draw costs on a vocabulary of 151,669 tokens, as a share of a decode step of 40 ms.

    python benchmarks/sampling.py

Medians over 200 draws. The logits are normal with deviation 3, or heavy at one token as real ones are.
"""

import statistics
import time
from dataclasses import replace

import numpy as np

from bankml.sampling.chain import SamplerChain
from bankml.sampling.logprobs import token_probs
from bankml.sampling.parameters import SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary

N_VOCAB = 151_669
STEP_MS = 40.0
DRAWS = 200

CHAINS = {
    "default": SamplingParams(seed=1),
    "greedy": SamplingParams(seed=1, temperature=0.0),
    "every sampler on": SamplingParams(
        seed=1,
        repeat_penalty=1.1,
        dry_multiplier=0.8,
        top_n_sigma=2.0,
        typical_p=0.9,
        xtc_probability=0.5,
        dynatemp_range=0.3,
    ),
    "top_k 300": SamplingParams(seed=1, top_k=300),
    "top_k 0": SamplingParams(seed=1, top_k=0),
    "top_k 0, min_p alone": SamplingParams(seed=1, samplers=("min_p", "temperature")),
    "mirostat 2": SamplingParams(seed=1, mirostat=2),
}


def median_ms(work) -> float:
    times = []
    for _ in range(DRAWS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    vocabulary = SamplerVocabulary(N_VOCAB, lambda text: [], lambda: [b"x"] * N_VOCAB)
    row = np.random.default_rng(1).normal(0, 3, N_VOCAB).astype(np.float32)
    row[1234] = 25.0
    for name, params in CHAINS.items():
        sampler = SamplerChain(replace(params), vocabulary)
        sampler.accept_all(range(500))
        report(name, median_ms(lambda s=sampler: s.sample(row)))
    report("logprobs, top 20", median_ms(lambda: token_probs(row, 1234, 20)))


def report(name: str, ms: float) -> None:
    print(f"{name:24} {ms * 1e3:8.0f} us  {100 * ms / STEP_MS:6.2f} % of {STEP_MS:.0f} ms")


if __name__ == "__main__":
    main()
