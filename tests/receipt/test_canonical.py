"""Canonical JSON against the examples of RFC 8785 and against another implementation of it."""

import json
import math
import struct

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from bankml.receipt.canonical import canonical_json

EXACT = (1 << 53) - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-EXACT, EXACT) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(JSON)
def test_it_is_the_other_implementations_form(value):
    assert canonical_json(value) == rfc8785.dumps(value)


@given(JSON)
def test_it_is_the_same_value(value):
    def number(digits):
        return int(digits) if abs(int(digits)) <= EXACT else float(digits)

    assert json.loads(canonical_json(value), parse_int=number) == value


@pytest.mark.parametrize(
    ("bits", "text"),
    [  # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_the_numbers_of_the_specification(bits, text):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number).decode() == text


def test_the_order_of_names_is_that_of_utf_16():
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical_json(dict.fromkeys(names, 0)))) == ordered


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, EXACT + 1, -EXACT - 1, "\ud800", {"\ud800": 1}, {1: 2}, b"", {1, 2}, deep(5000)]
)
def test_what_has_no_canonical_form(value):
    with pytest.raises(ValueError):
        canonical_json(value)
