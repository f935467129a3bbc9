"""Prometheus' own parsers read what is written, in both of its formats, and find the numbers that were counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import parser
from prometheus_client.openmetrics import parser as strict

from bankml.measure.completions import Record
from bankml.measure.counters import TTFT_SECONDS, Counters
from bankml.measure.exposition import END, Family, Sample, counter, written
from bankml.measure.prometheus import ServerState, exposition

FORMATS = [(parser.text_string_to_metric_families, False), (strict.text_string_to_metric_families, True)]


def read(parse, data):
    """{(sample's name, its labels): value} of every sample, each there once."""
    samples = [sample for family in parse(data.decode()) for sample in family.samples]
    found = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


@pytest.mark.parametrize(("parse", "openmetrics"), FORMATS)
def test_what_was_counted_is_what_is_read(parse, openmetrics):
    counters = Counters()
    for _ in range(3):
        counters.request("/v1/chat/completions", 200)
    counters.request("none", 404)
    counters.refused(403)
    counters.answered(Record(0, "m", 30, 10, 5, prompt_ms=100, ttft_ms=100, eval_ms=50, resampled=2, energy_j=1.5))
    counters.answered(Record(0, "m", 30, 0, 1, ttft_ms=100_000))
    counters.answered(Record(0, None, None, None, 7))
    found = read(parse, exposition(counters.counts(), ServerState("llama.cpp", 2, 1, 270, 3, 5), openmetrics))
    expected = {
        ("bankml_requests_total", (("route", "/v1/chat/completions"), ("status", "200"))): 3,
        ("bankml_requests_total", (("route", "none"), ("status", "404"))): 1,
        ("bankml_refused_requests_total", (("status", "403"),)): 1,
        ("bankml_prompt_tokens_total", ()): 60,
        ("bankml_cached_tokens_total", ()): 10,
        ("bankml_completion_tokens_total", ()): 13,
        ("bankml_completions_total", ()): 3,
        ("bankml_cache_hits_total", ()): 1,
        ("bankml_resampled_tokens_total", ()): 2,
        ("bankml_completions_energy_joules_total", ()): 1.5,
        ("bankml_time_to_first_token_seconds_count", ()): 2,
        ("bankml_time_to_first_token_seconds_sum", ()): 100.1,
        ("bankml_time_to_first_token_seconds_bucket", (("le", "0.05"),)): 0,
        ("bankml_time_to_first_token_seconds_bucket", (("le", "0.1"),)): 1,  # the bound itself is within
        ("bankml_time_to_first_token_seconds_bucket", (("le", "60.0"),)): 1,
        ("bankml_time_to_first_token_seconds_bucket", (("le", "+Inf"),)): 2,
        ("bankml_prompt_tokens_per_second_sum", ()): 200,
        ("bankml_generated_tokens_per_second_bucket", (("le", "75.0"),)): 0,
        ("bankml_generated_tokens_per_second_bucket", (("le", "100.0"),)): 1,
        ("bankml_queue_length", ()): 2,
        ("bankml_resident_model_bytes", ()): 270,
        ("bankml_prompt_cache_bytes", ()): 3,
        ("bankml_kv_bytes", ()): 5,
        ("llamacpp:prompt_tokens_total", ()): 50,
        ("llamacpp:prompt_tokens_cached_total", ()): 10,
        ("llamacpp:prompt_seconds_total", ()): 0.1,
        ("llamacpp:tokens_predicted_total", ()): 13,
        ("llamacpp:tokens_predicted_seconds_total", ()): 0.05,
        ("llamacpp:prompt_tokens_seconds", ()): 500,
        ("llamacpp:predicted_tokens_seconds", ()): 260,
        ("llamacpp:requests_processing", ()): 1,
        ("llamacpp:requests_deferred", ()): 2,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found[("process_resident_memory_bytes", ())] > 1 << 20
    assert any(name == "bankml_build_info" and ("engine", "llama.cpp") in labels for name, labels in found)


@pytest.mark.parametrize(("parse", "openmetrics"), FORMATS)
def test_what_a_server_does_not_have_is_left_out(parse, openmetrics):
    found = read(parse, exposition(Counters().counts(), ServerState("llama.cpp"), openmetrics))
    names = {name for name, _ in found}
    assert not names & {"bankml_queue_length", "bankml_resident_model_bytes", "bankml_completions_energy_joules_total"}
    assert found[("bankml_completions_total", ())] == 0


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\0"), max_size=20))
def test_label_values_come_through(value):
    family = counter("x", "Help.", (1, (("label", value),)))
    for parse, openmetrics in FORMATS:
        data = written([family], openmetrics) + (END if openmetrics else b"")
        assert data.count(b"\n") == (4 if openmetrics else 3)  # nobody writes a line of their own
        if value.isprintable():  # the parsers split at more than line feeds
            assert read(parse, data) == {("x_total", (("label", value),)): 1}


def test_units_are_told_in_openmetrics_alone():
    family = Family("x_seconds", "gauge", "Help.", [Sample(0.5)], "seconds")
    assert written([family]) == b"# HELP x_seconds Help.\n# TYPE x_seconds gauge\nx_seconds 0.5\n"
    assert b"# UNIT x_seconds seconds\n" in written([family], openmetrics=True)


def test_bounds_ascend():
    assert list(TTFT_SECONDS) == sorted(set(TTFT_SECONDS))
