"""The text of an answer from its tokens' bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.errors import RequestError
from bankml.text.pieces import TextStream

LETTERS = st.text("ab é🙂", max_size=30)


def pushed(pieces, stops=()):
    """(what each push released, what finish released, the stream)."""
    stream = TextStream(stops)
    released = [stream.push(piece) for piece in pieces]
    return released, "" if stream.stopped else stream.finish(), stream


@st.composite
def splits(draw, data):
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@given(st.data(), LETTERS, st.text("ab é🙂", min_size=1, max_size=4))
def test_any_split_gives_the_text_before_the_stop_string(data, text, stop):
    released, rest, stream = pushed(data.draw(splits(text.encode())), [stop])
    assert "".join(released) + rest == text.partition(stop)[0] == stream.text
    assert stream.stop_word == (stop if stop in text else None)


@given(st.data(), st.binary(max_size=40))
def test_any_bytes_give_what_they_decode_to(data, given_bytes):
    released, rest, _ = pushed(data.draw(splits(given_bytes)))
    assert "".join(released) + rest == given_bytes.decode("utf-8", "replace")


@given(st.data(), LETTERS, st.lists(st.text("ab é🙂", min_size=1, max_size=4), max_size=4))
def test_no_stop_string_is_ever_released(data, text, stops):
    stream = TextStream(stops)
    seen = ""
    for piece in data.draw(splits(text.encode())):
        seen += stream.push(piece)
        assert not any(stop in seen for stop in stops)
        assert not any(not stream.stopped and seen.endswith(stop[: i + 1]) for stop in stops for i in range(len(stop)))


def test_the_earliest_stop_string_wins_and_the_first_of_equals():
    assert pushed([b"xabcd"], ["cd", "abc"])[2].stop_word == "abc"
    assert pushed([b"xab"], ["a", "ab"])[2].stop_word == "a"
    stream = pushed([b"x", b"a", b"b", b"y"], ["ab"])[2]
    assert (stream.text, stream.stop_word, stream.stopped) == ("x", "ab", True)
    assert stream.push(b"more") == ""


def test_text_is_held_while_a_stop_string_may_be_forming():
    released, rest, _ = pushed([b"one E", b"N", b"D", b"S", b"E"], ["END."])
    assert (released, rest) == (["", "", "", "one ENDS", ""], "E")


def test_a_character_is_released_when_it_is_whole():
    face = "🙂".encode()
    stream = TextStream()
    assert [stream.push(face[:2]), stream.at_boundary] == ["", False]
    assert [stream.push(face[2:]), stream.at_boundary] == ["🙂", True]


def test_what_is_incomplete_at_the_end_becomes_a_replacement_character():
    released, rest, stream = pushed([b"a", "é".encode()[:1]])
    assert (released, rest, stream.text) == (["a", ""], "\ufffd", "a\ufffd")


def test_bytes_that_are_no_utf8_are_replaced_one_by_one():
    assert pushed([b"a\xffb", b"\x80", b"\xe2(xy"])[2].text == "a\ufffdb\ufffd\ufffd(xy"


def test_a_stop_string_before_an_unfinished_character_is_found():
    assert pushed([b"x \xf0\x9f", b"\x98\x82"], [" "])[2].text == "x"


def test_an_empty_stop_string_is_refused():
    with pytest.raises(RequestError, match="must not be empty"):
        TextStream(["a", ""])
