"""What a SamplerChain reports of itself: the probabilities asked for, and the parameters it works with."""

import json

import numpy as np
import pytest

from bankml.api.reading.sampling import read_sampling
from bankml.errors import RequestError
from bankml.sampling.chain import SamplerChain
from bankml.sampling.parameters import SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary

N_VOCAB = 50
LOGITS = np.random.RandomState(3).randint(-60, 60, N_VOCAB).astype(np.float32) / np.float32(8)


def sampler(chat=False, **body):
    vocabulary = SamplerVocabulary(N_VOCAB, lambda text: [7], lambda: [b"x"] * N_VOCAB, [2, 3])
    return SamplerChain(read_sampling({"seed": 1, **body}, chat=chat).over(SamplingParams(), vocabulary), vocabulary)


def reported(**body):
    chain = sampler(**body)
    return chain.probabilities(LOGITS, chain.sample(LOGITS))


def test_nothing_is_reported_unasked():
    assert reported() is None and reported(n_probs=0) is None
    assert reported(chat=True, logprobs=True, top_logprobs=0) is not None  # the chosen token's alone


def test_as_many_as_were_asked_for_and_there_are():
    assert len(reported(n_probs=3).top) == 3
    assert len(reported(n_probs=1000).top) == N_VOCAB
    with pytest.raises(RequestError, match="'n_probs': Value must be between 0 <= value <= 1000, but got 1001"):
        sampler(n_probs=1001)
    assert len(reported(chat=True, logprobs=True).top) == 20
    assert len(reported(logprobs=True).top) == 1  # /completion counts true as 1
    assert reported(n_probs=1, temperature=0).top[0][0] == int(LOGITS.argmax())


def test_logarithms_sum_to_one_and_the_chains_probabilities_too():
    logs = reported(n_probs=N_VOCAB, top_k=2)
    assert logs.logarithmic and abs(sum(np.exp(value) for _, value in logs.top) - 1) < 1e-5
    left = reported(n_probs=N_VOCAB, top_k=2, top_p=1, min_p=0, post_sampling_probs=True)
    assert not left.logarithmic and len(left.top) == 2 and abs(sum(value for _, value in left.top) - 1) < 1e-6


def test_settings_are_a_requests_fields_and_json():
    settings = sampler(ignore_eos=True, top_k=5, dry_sequence_breakers=["\n"]).settings
    assert settings["top_k"] == 5 and settings["dry_sequence_breakers"] == ("\n",)
    assert settings["logit_bias"] == [{"token": 2, "bias": None}, {"token": 3, "bias": None}]
    assert "suppressed" not in settings
    assert json.loads(json.dumps(settings, allow_nan=False))["samplers"][0] == "penalties"
