"""What llama.cpp b11192's own samplers drew (scripts/record_sampling.py): the same tokens and the same bits."""

import json

import numpy as np
import pytest

from bankml.sampling.parameters import SamplingParams
from tests.sampling.cases import Case
from tests.sampling.native import sampler
from tests.sampling.recordings import FILE, checksum

RECORDED = json.loads(FILE.read_text())


def params_of(values: dict) -> SamplingParams:
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    if "logit_bias" in lists:
        lists["logit_bias"] = tuple((token, bias) for token, bias in values["logit_bias"])
    return SamplingParams(**(values | lists))


@pytest.mark.parametrize("name", sorted({one["name"] for one in RECORDED}))
def test_recorded(name: str) -> None:
    for one in (one for one in RECORDED if one["name"] == name):
        case = Case(
            params_of(one["params"]),
            tuple(one["history"]),
            tuple(tuple(b) for b in one["breakers"]),
            len(one["draws"]),
        )
        rows = [np.frombuffer(bytes.fromhex(draw["logits"]), dtype=np.float32) for draw in one["draws"]]
        ours = sampler(case, len(rows[0]))
        for row, draw in zip(rows, one["draws"], strict=True):
            assert ours.sample(row) == draw["token"], one["params"]
            assert checksum(*ours.native.candidates()) == draw["left"], one["params"]
            ours.accept(draw["token"])
