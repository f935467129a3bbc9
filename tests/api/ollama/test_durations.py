"""Durations as Go reads and writes them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.api.ollama.durations import FOREVER, keep_alive_option, keep_alive_seconds, moment, parse_duration
from bankml.errors import RequestError

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("5m", 300 * SECOND), ("1h30m", 5400 * SECOND), ("0", 0), ("0s", 0), ("-0", 0), ("+5s", 5 * SECOND),
        ("-1s", -SECOND), ("1.5s", 3 * SECOND // 2), (".5s", SECOND // 2), ("1.s", SECOND), ("100ms", SECOND // 10),
        ("1us", 1000), ("1µs", 1000), ("1μs", 1000), ("3ns", 3), ("1h1h", 7200 * SECOND), ("1ns2ns", 3),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("", None), ("5", None), ("-1", None), ("m", None), (".s", None), ("5 m", None), ("5m ", None), ("1d", None),
        ("1h-5m", None), ("--1s", None), ("5M", None), ("1e3s", None), ("٣s", None), ("2562048h", None),
        ("1..5s", None),
    ],
)  # fmt: skip
def test_durations_are_gos(text, nanoseconds):
    assert parse_duration(text) == nanoseconds


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["h", "m", "s", "ms", "us", "ns"])), min_size=1))
def test_parts_add_up(parts):
    scale = {"h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 10**6, "us": 1000, "ns": 1}
    whole = sum(n * scale[unit] for n, unit in parts)
    assert parse_duration("".join(f"{n}{unit}" for n, unit in parts)) == (whole if whole < 2**63 else None)


@given(st.text("0123456789.-+hmsunµ", max_size=12))
def test_whatever_is_written_is_read_or_not(text):
    assert isinstance(parse_duration(text), int | None)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5m", 300), ("1.5s", 1.5), ("0", 0), (0, 0), (0.0, 0), (60, 60), (0.5, 0.5), (-1, FOREVER), ("-1m", FOREVER),
        (10**15, FOREVER),
    ],
)  # fmt: skip
def test_how_long_a_model_stays(value, seconds):
    assert keep_alive_seconds(value) == seconds


@pytest.mark.parametrize("value", ["", "-1", "5 minutes", True, False, [], {}, None, "9" * 200 + "s"])
def test_what_is_no_duration_is_refused_by_name(value):
    with pytest.raises(RequestError, match=r"Field 'keep_alive': expected a duration such as \"5m\""):
        keep_alive_seconds(value)


@pytest.mark.parametrize(("text", "seconds"), [("5m", 300), ("300", 300), ("-1", FOREVER), ("0", 0), ("1.5", 1.5)])
def test_on_the_command_line_seconds_are_text(text, seconds):
    assert keep_alive_option(text) == seconds


@given(st.integers(0, 4 * 10**18))
def test_moments_are_rfc_3339_without_zeros_at_the_end(nanoseconds):
    text = moment(nanoseconds)
    assert text.endswith("Z") and not ("." in text and text.endswith("0Z"))
    back = datetime.fromisoformat(text)
    assert back.tzinfo is UTC and abs(back.timestamp() - nanoseconds / SECOND) < 1e-3


def test_moments():
    assert moment(0) == "1970-01-01T00:00:00Z"
    assert moment(1691138387499127000) == "2023-08-04T08:39:47.499127Z"
