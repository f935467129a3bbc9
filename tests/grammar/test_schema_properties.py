"""Doubles as b11192's JSON library writes them: properties that hold for every one."""

import math
import struct

from hypothesis import given
from hypothesis import strategies as st

from bankml.grammar.json_schema.float_digits import float_digits
from bankml.grammar.json_schema.json_text import json_text

doubles = (
    st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0]).filter(math.isfinite)
)


@given(doubles)
def test_a_double_reads_back(value):
    text = json_text(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert any(mark in text for mark in ".e"), "a float stays one"


@given(doubles.filter(lambda value: value != 0))
def test_its_digits_are_few_and_none_is_wasted(value):
    digits, _ = float_digits(abs(value))
    assert 1 <= len(digits) <= 17
    assert digits[0] != "0"
