"""Records which tokens llama.cpp's samplers draw, for the tests that run without it.

    python -m scripts.record_sampling

Writes tests/recordings/sampling/draws.json: for each sampler alone and for combinations of them a few cases, each with
its parameters, the logits of each draw (made by tests/sampling/cases.py, kept as the hexadecimal of float32 bits), the
token drawn and a checksum over the candidates left (ids, logits and, where a sampler set them, probabilities).
"""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tests.sampling import cases
from tests.sampling.recordings import FILE, checksum
from tests.sampling.reference import ReferenceSampler, load

ROOT = Path(__file__).parents[1]

SIZES = (5, 40, 150)
EACH = 8
COMBINED = 60


def record() -> list[dict]:
    lib = load()
    result = []
    for name in [*cases.ALONE, *["combined"] * (COMBINED // EACH)]:
        for i in range(EACH):
            r = np.random.default_rng([len(result), i])
            n = SIZES[i % len(SIZES)]
            case = cases.combined(r, n) if name == "combined" else cases.alone(name, r, n)
            reference = ReferenceSampler(lib, case.params, n, case.breakers)
            for token in case.history:
                reference.accept(token)
            draws = []
            for _ in range(case.draws):
                row = cases.logits(r, n)
                token, left = reference.apply(row)
                reference.accept(token)
                sums = checksum(left["id"], left["logit"], left["p"])
                draws.append({"logits": row.tobytes().hex(), "token": token, "left": sums})
            params = {k: v for k, v in asdict(case.params).items() if v != getattr(cases.SamplingParams(), k)}
            result.append(
                {"name": name, "params": params, "history": case.history, "breakers": case.breakers, "draws": draws}
            )
    return result


if __name__ == "__main__":
    FILE.write_text("[\n" + ",\n".join(json.dumps(one) for one in record()) + "\n]\n")
