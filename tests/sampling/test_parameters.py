"""A model's own defaults, from its header."""

import pytest

from bankml.errors import Refused
from bankml.sampling.numbers import float32
from bankml.sampling.parameters import SamplingParams, model_defaults


def test_a_header_without_any_leaves_llama_cpps() -> None:
    assert model_defaults({"general.name": "x"}) == SamplingParams()


def test_every_key_llama_cpp_applies() -> None:
    header = {
        "general.sampling.top_k": 20,
        "general.sampling.top_p": float32(0.8),
        "general.sampling.min_p": 0.0,
        "general.sampling.xtc_probability": 0.5,
        "general.sampling.xtc_threshold": float32(0.2),
        "general.sampling.temp": float32(0.6),
        "general.sampling.penalty_last_n": -1,
        "general.sampling.penalty_repeat": float32(1.05),
        "general.sampling.mirostat": 2,
        "general.sampling.mirostat_tau": 4.0,
        "general.sampling.mirostat_eta": float32(0.2),
        "general.sampling.sequence": "top_k;Top-P;no such sampler;temperature",
        "tokenizer.ggml.suppress_tokens": [5, 6],
    }
    assert model_defaults(header) == SamplingParams(
        top_k=20,
        top_p=float32(0.8),
        min_p=0.0,
        xtc_probability=0.5,
        xtc_threshold=float32(0.2),
        temperature=float32(0.6),
        repeat_last_n=-1,
        repeat_penalty=float32(1.05),
        mirostat=2,
        mirostat_tau=4.0,
        mirostat_eta=float32(0.2),
        samplers=("top_k", "top_p", "temperature"),
        suppressed=(5, 6),
    )


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float32(0.123456789), float32(0.123457)),  # printed to six decimals on the way
        (1, 1.0),
        ("0.5 or so", 0.5),
        ("warm", None),
        (True, None),
        ([1.0], None),
        (float("nan"), None),
        ("0." + "1" * 9999, float32(1 / 9)),
    ],
)
def test_values_are_read_as_llama_cpp_prints_them(value: object, kept: float | None) -> None:
    expected = SamplingParams().temperature if kept is None else kept
    assert model_defaults({"general.sampling.temp": value}).temperature == expected


@pytest.mark.parametrize(
    "header",
    [
        {"general.sampling.mirostat": 3},
        {"general.sampling.penalty_repeat": 0.0},
        {"general.sampling.top_k": 2**40},
        {"general.sampling.temp": 1e300},
        {"general.sampling.sequence": "infill"},
    ],
)
def test_what_would_stop_llama_server_is_refused(header: dict) -> None:
    with pytest.raises(Refused, match=r"general\.sampling\."):
        model_defaults(header)


def test_what_llama_cpps_buffers_do_not_hold_is_cut_off() -> None:
    names = "top_k;" * 84 + "top_p;temperature"
    assert model_defaults({"general.sampling.sequence": names}).samplers == ("top_k",) * 84 + ("top_p",)
    with pytest.raises(Refused, match=r"general\.sampling\.top_k must be a 32-bit integer"):
        model_defaults({"general.sampling.top_k": "9" * 9999})
