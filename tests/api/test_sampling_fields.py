"""A request's fields: what they set, which values are moved into range, and what is refused in which words."""

import json
import math

import pytest

from bankml.api.reading.sampling import read_sampling
from bankml.errors import RequestError
from bankml.sampling.numbers import float32
from bankml.sampling.parameters import RANDOM_SEED, SamplingParams
from bankml.sampling.vocabulary import SamplerVocabulary

VOCABULARY = SamplerVocabulary(100, lambda text: [ord(c) % 100 for c in text], lambda: [], end_of_generation=(2, 7))
DEFAULTS = SamplingParams()


def read(text: str, defaults: SamplingParams = DEFAULTS, chat: bool = True) -> SamplingParams:
    return read_sampling(json.loads(text), chat=chat).over(defaults, VOCABULARY)


def test_nothing_given_keeps_the_defaults() -> None:
    model = SamplingParams(temperature=0.25, top_k=7, samplers=("top_k",), logit_bias=((3, 1.0),))
    assert read("{}", model) == model
    nulls = {field: None for field in SamplingParams.__dataclass_fields__} | {"logprobs": None, "top_logprobs": None}
    assert read(json.dumps(nulls), model) == model


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("temperature", 0.7, float32(0.7)),
        ("temperature", -1, 0.0),
        ("top_p", 2.0, 1.0),
        ("min_p", -1, 0.0),
        ("xtc_probability", 1.5, 1.0),
        ("xtc_threshold", -0.5, 0.0),
        ("typical_p", 1.5, 1.5),
        ("top_k", -3, 0),
        ("top_k", 2.9, 2),
        ("min_keep", 3, 3),
        ("mirostat", 7, 2),
        ("mirostat", -1, 0),
        ("dry_base", 0.5, 1.75),
        ("dry_base", 1.5, 1.5),
        ("seed", -1, RANDOM_SEED),
        ("seed", 4294967295, RANDOM_SEED),
        ("seed", 4294967296 + 7, 7),
        ("seed", -2, 4294967294),
        ("seed", 42, 42),
        ("presence_penalty", -0.3, float32(-0.3)),
        ("adaptive_target", 2, 1.0),
        ("n_probs", 4, 4),
        ("post_sampling_probs", True, True),
        ("dry_sequence_breakers", ["a", ""], ("a", "")),
        ("samplers", ["Top-K", "temp", "typ", "nucleus", "minp"], ("top_k", "temperature", "typ_p", "top_p", "min_p")),
        ("samplers", "kpt", ("top_k", "top_p", "temperature")),
        ("samplers", [], ()),
    ],
)
def test_what_a_field_sets(field: str, given: object, kept: object) -> None:
    assert getattr(read(json.dumps({field: given})), field) == kept


COUNT = "Value must be between 0 <= value <= 2147483647, but got "
NUMBER = "Value must be a number, but got "
BREAKERS = "Error: dry_sequence_breakers must be a non-empty array of strings"


@pytest.mark.parametrize(
    ("field", "given", "sentence"),
    [
        ("repeat_last_n", "-1", COUNT + "-1"),
        ("dry_penalty_last_n", "-5", COUNT + "-5"),
        ("dry_allowed_length", "2147483648", COUNT + "2147483648"),
        ("min_keep", "-1", COUNT + "-1"),
        ("n_probs", "-1", "Value must be between 0 <= value <= 1000, but got -1"),
        ("top_k", "5000000000", "Value must be between -2147483648 <= value <= 2147483647, but got 5000000000"),
        ("adaptive_decay", "2", "Value must be between 0.000000 <= value <= 0.990000, but got 2.000000"),
        ("temperature", '"hot"', NUMBER + "a string"),
        ("top_k", "true", NUMBER + "a boolean"),
        ("top_k", "[1]", NUMBER + "an array"),
        ("mirostat_tau", "{}", NUMBER + "an object"),
        ("temperature", "1e400", "Value must be a finite number, but got inf"),
        ("temperature", "NaN", "Value must be a finite number, but got nan"),
        ("temperature", "1e39", "Value must fit a 32-bit float, but got 1e+39"),
        ("ignore_eos", "1", "Value must be a boolean, but got a number"),
        ("backend_sampling", "true", "sampling on a backend is not supported"),
        ("dry_sequence_breakers", "[]", BREAKERS),
        ("dry_sequence_breakers", '"x"', BREAKERS),
        ("dry_sequence_breakers", "[1]", BREAKERS),
        ("samplers", "5", "Value must be an array of names or a string of letters, but got a number"),
        ("samplers", '["infill"]', "the sampler 'infill' is not supported"),
        ("logit_bias", '"x"', "Value must be an array of pairs or an object, but got a string"),
        ("logit_bias", "[[1]]", "entry 0 must be a pair [token, bias], but got an array"),
        ("logit_bias", "[[1, 1], 7]", "entry 1 must be a pair [token, bias], but got a number"),
        ("logit_bias", "[[1, true]]", "the bias of entry 0 must be a number or false, but got a boolean"),
        ("logit_bias", "[[1.5, 1]]", "the token of entry 0 must be an id or a text, but got a number"),
        ("logit_bias", '{"100": 1}', "the token of '100' must be between 0 <= id <= 99"),
        ("logit_bias", '{"-1": 1}', "the token of '-1' must be between 0 <= id <= 99"),
        ("logit_bias", '{"": 1}', "the token of '' is an empty text"),
        ("logit_bias", '{"5": 1e99}', "the bias of '5' must fit a 32-bit float"),
    ],
)
def test_refusals(field: str, given: str, sentence: str) -> None:
    with pytest.raises(RequestError) as refused:
        read(f'{{"{field}": {given}}}')
    assert refused.value.message == f"Field '{field}': {sentence}"
    assert refused.value.status == 400


@pytest.mark.parametrize("given", ["0", "-1.5", "1e-44"])
def test_a_repeat_penalty_that_cannot_divide(given: str) -> None:
    with pytest.raises(RequestError) as refused:
        read(f'{{"repeat_penalty": {given}}}')
    assert refused.value.message == "Failed to initialize samplers: penalty_repeat must be finite and greater than 0"


def test_top_logprobs_needs_logprobs() -> None:
    for text in ('{"top_logprobs": 3}', '{"top_logprobs": 3, "logprobs": 3}', '{"top_logprobs": 3, "logprobs": false}'):
        with pytest.raises(RequestError) as refused:
            read(text)
        assert refused.value.message == "top_logprobs requires logprobs to be set to true"
    with pytest.raises(RequestError, match="'top_logprobs': Value must be a number, but got a string"):
        read('{"logprobs": true, "top_logprobs": "x"}')


def test_a_number_of_very_many_digits_is_refused_in_few() -> None:
    for field in ("top_k", "temperature", "seed"):
        with pytest.raises(RequestError) as refused:
            read_sampling({field: 10**5000}).over(DEFAULTS, VOCABULARY)
        assert f"'{field}'" in refused.value.message
        assert len(refused.value.message) < 200


@pytest.mark.parametrize("given", [["topk", "no such"], "kz", [" top_k"]])
def test_unknown_samplers_are_refused(given: object) -> None:
    with pytest.raises(RequestError, match=r"there is no sampler '.*'; there are penalties"):
        read_sampling({"samplers": given}).over(DEFAULTS, VOCABULARY)


def test_too_many_breakers_are_refused() -> None:
    with pytest.raises(RequestError, match="at most 256 strings"):
        read_sampling({"dry_sequence_breakers": ["x"] * 257}).over(DEFAULTS, VOCABULARY)


def test_logit_bias() -> None:
    pairs = read('{"logit_bias": [[12, 5.0], ["AB", -4], [2, false]]}').logit_bias
    assert pairs == ((12, 5.0), (65, -4.0), (66, -4.0), (2, -math.inf))
    by_name = read('{"logit_bias": {"12": -100, " +3": 1, "A": 0.1}}').logit_bias
    assert by_name == ((12, -100.0), (3, 1.0), (65, float32(0.1)))


def test_ignore_eos_bans_every_end_of_generation_token() -> None:
    params = read('{"ignore_eos": true, "logit_bias": {"12": 1}}')
    assert params.logit_bias == ((12, 1.0), (2, -math.inf), (7, -math.inf))
    assert read('{"ignore_eos": false}').logit_bias == ()


@pytest.mark.parametrize(
    ("text", "chat", "n_probs"),
    [
        ('{"logprobs": true}', True, 20),
        ('{"logprobs": true, "top_logprobs": 5}', True, 5),
        ('{"logprobs": true, "top_logprobs": 0}', True, 1),
        ('{"logprobs": true, "top_logprobs": 5, "n_probs": 9}', True, 5),
        ('{"logprobs": 3}', True, 3),
        ('{"logprobs": false}', True, 0),
        ('{"n_probs": 4, "logprobs": 3}', False, 4),
        ('{"logprobs": true, "top_logprobs": 5}', False, 1),
    ],
)
def test_how_many_probabilities(text: str, chat: bool, n_probs: int) -> None:
    assert read(text, chat=chat).n_probs == n_probs


def test_a_chain_has_an_end():
    vocabulary = SamplerVocabulary(4, lambda text: [], lambda: [b"a", b"b", b"c", b"d"])
    assert len(read_sampling({"samplers": ["temperature"] * 64}).over(SamplingParams(), vocabulary).samplers) == 64
    with pytest.raises(RequestError, match="expected at most 64 samplers, but got 65"):
        read_sampling({"samplers": "t" * 65}).over(SamplingParams(), vocabulary)
