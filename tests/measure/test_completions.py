"""The ring of completions, its totals, and the rates."""

import json

from hypothesis import given
from hypothesis import strategies as st

from bankml.measure.completions import RING, Completions, Record, rate

COUNT = st.none() | st.integers(0, 10**6)
RECORDS = st.builds(
    Record, time=st.just(0.0), model=st.just("m"), prompt_tokens=COUNT, cached_tokens=COUNT, completion_tokens=COUNT,
    grammar_ms=st.none() | st.integers(0, 1000), resampled=COUNT, energy_j=st.none() | st.integers(0, 50),
)  # fmt: skip


@given(st.lists(RECORDS, max_size=12), st.integers(1, 8))
def test_totals_are_of_all_and_the_ring_is_of_the_last(records, kept):
    completions = Completions(kept)
    for record in records:
        completions.record(record)
    told = json.loads(completions.written())
    assert told["ring"] == kept and told["totals"].pop("completions") == len(records)
    assert told["completions"] == [json.loads(json.dumps(record.as_json())) for record in records[-kept:]]
    assert told["totals"].pop("cache_hits") == sum(bool(record.cached_tokens) for record in records)
    for name, total in told["totals"].items():
        measured = [value for record in records if (value := getattr(record, name)) is not None]
        tokens = name.endswith("_tokens")
        assert total == (sum(measured) if measured or tokens else None), name


def test_the_ring_has_256():
    completions = Completions()
    for number in range(RING + 44):
        completions.record(Record(number, "m"))
    told = json.loads(completions.written())
    assert [record["time"] for record in told["completions"]] == list(range(44, RING + 44))
    assert told["totals"]["completions"] == 300


def test_rates_count_what_was_computed():
    record = Record(0, "m", prompt_tokens=30, cached_tokens=10, completion_tokens=5, prompt_ms=100, eval_ms=50)
    assert (record.prompt_per_second, record.predicted_per_second) == (200, 80)
    bare = Record(0, "m", prompt_tokens=30, completion_tokens=1, eval_ms=0.0)
    assert (bare.prompt_per_second, bare.predicted_per_second) == (None, None)
    assert rate(0, 5) is None and rate(3, 0) is None
