"""Every option is honoured, known to change nothing, or refused by name."""

from dataclasses import asdict

import pytest

from bankml.api.ollama.options import NAMES, NEUTRAL, read_options
from bankml.errors import RequestError
from bankml.library.parameters import IGNORED
from bankml.model.limits import MAX_CONTEXT
from bankml.sampling.numbers import float32

CLIENTS = {
    "numa", "num_ctx", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mmap",
    "use_mlock", "embedding_only", "num_thread", "num_keep", "seed", "num_predict", "top_k", "top_p", "tfs_z",
    "typical_p", "repeat_last_n", "temperature", "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat",
    "mirostat_tau", "mirostat_eta", "penalize_newline", "stop",
}  # fmt: skip
"""What Ollama's clients know."""


def set_by(given):
    """What the options set, without what they leave to the model."""
    options = read_options(given)
    found = {name: value for name, value in asdict(options.sampling).items() if value is not None}
    rest = {"max_tokens": options.max_tokens, "stop": options.stop}
    return found | {name: value for name, value in rest.items() if value is not None}


def test_each_option_becomes_the_field_it_is():
    given = {
        "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0, "typical_p": 1.0, "min_keep": 1, "seed": 7,
        "repeat_last_n": 0, "repeat_penalty": 1.1, "presence_penalty": -1, "frequency_penalty": 0.5, "num_predict": 9,
        "num_ctx": 512, "stop": ["a", "b"], "mirostat": 2, "mirostat_tau": 5.0, "mirostat_eta": 0.5,
    }  # fmt: skip
    assert set(given) == set(NAMES)
    options = read_options(given)
    assert options.num_ctx == 512
    expected = {name: value for name, value in given.items() if name not in ("num_predict", "num_ctx")}
    as_read = {name: float32(value) if isinstance(value, float) else value for name, value in expected.items()}
    assert set_by(given) == as_read | {"max_tokens": 9, "stop": ("a", "b")}


def test_numbers_are_read_as_on_v1():
    """A fraction given for a whole number is cut off, a float is rounded to 32 bits."""
    assert set_by({"top_k": 5.9, "temperature": 0.7}) == {"top_k": 5, "temperature": float32(0.7)}
    with pytest.raises(RequestError) as found:
        read_options({"repeat_last_n": -2})
    assert (
        found.value.message
        == "Field 'options.repeat_last_n': Value must be between -1 <= value <= 2147483647, but got -2"
    )


def test_every_option_of_the_clients_is_honoured_ignored_or_refused():
    refused = set()
    for name in CLIENTS:
        try:
            read_options({name: ["x"] if name == "stop" else 1})
        except RequestError as error:
            assert f"Field 'options.{name}'" in error.message, "an option that is honoured may be 1"
            refused.add(name)
    assert refused == {"embedding_only", "penalize_newline"}, "a number is neither true nor false"
    assert {*NAMES, *IGNORED, *NEUTRAL} >= CLIENTS


def test_options_are_accepted_at_the_value_that_changes_nothing():
    neutral = {"tfs_z": 1.0, "penalize_newline": True, "embedding_only": False, "draft_num_predict": 0}
    assert neutral.keys() == NEUTRAL.keys()
    assert read_options(neutral) == read_options(dict.fromkeys(neutral)) == read_options({})
    for name, value in {"tfs_z": 0.5, "penalize_newline": False, "embedding_only": True}.items():
        with pytest.raises(RequestError, match=rf"^Field 'options\.{name}': unsupported option: only "):
            read_options({name: value})


def test_repeat_last_n_of_minus_one_is_the_whole_context():
    assert read_options({"repeat_last_n": -1}).sampling.repeat_last_n == MAX_CONTEXT


def test_seeds_of_63_bits():
    assert read_options({"seed": 2**62 + 5}).sampling.seed == 2**62 + 5


@pytest.mark.parametrize("name", ["mirostat3", "temprature", "", "Temperature", "num_ctx ", "x" * 500])
def test_an_unknown_option_is_named_even_when_it_is_null(name):
    for value in (1, None):
        with pytest.raises(RequestError, match=rf"Field 'options\.{name[:80]}': unsupported option") as found:
            read_options({"temperature": 0, name: value})
        assert len(found.value.message) < 400


def test_null_is_the_same_as_nothing():
    assert read_options(dict.fromkeys(NAMES)) == read_options({})


@pytest.mark.parametrize(("given", "limit"), [(-1, -1), (-2, -1), (-1000, -1), (0, 0), (5, 5), (5.0, 5)])
def test_a_negative_number_to_predict_is_no_limit(given, limit):
    assert set_by({"num_predict": given}) == {"max_tokens": limit}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"), ("temperature", True), ("top_k", 2**40), ("seed", 2**64), ("num_ctx", 0),
        ("num_ctx", -1), ("num_predict", "x"), ("min_keep", -1), ("repeat_last_n", -2), ("stop", 5), ("stop", ""),
        ("stop", [""]), ("stop", [1]), ("stop", {}), ("top_p", 1e300),
        ("repeat_penalty", 0), ("repeat_penalty", -1.5), ("repeat_penalty", 1e-40), ("repeat_penalty", 1e-60),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_by_the_options_name(name, value):
    with pytest.raises(RequestError, match=rf"^Field 'options\.{name}(\[0\])?': "):
        read_options({name: value})


@pytest.mark.parametrize(("stop", "read"), [("a", ("a",)), (["a", "b"], ("a", "b")), ([], ())])
def test_stop_strings(stop, read):
    assert set_by({"stop": stop}) == {"stop": read}


def test_what_is_ignored_may_be_anything():
    assert read_options({name: "whatever" for name in IGNORED}) == read_options({})
