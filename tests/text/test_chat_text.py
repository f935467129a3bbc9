"""Bytes that are no UTF-8, as llama-server shows them in a chat: by the shape of a character, not by its value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.text.pieces import TextStream, chat_text

BYTES = st.lists(
    st.sampled_from([b"a", b"\x80", b"\xbf", b"\xc3", b"\xe2", b"\xed", b"\xf0", b"\xf4", b"\xf9"]), max_size=9
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("é🙂".encode(), "é🙂"),
        (b"a\xff\x80b", "a\ufffd\ufffdb"),
        (b"\xe2\x82a", "\ufffda"),  # one sequence that a letter breaks off
        (b"\xf0\x80\x80a", "\ufffda"),
        (b"\xe2\xe2\x82\xac", "\ufffd€"),
        (b"\xed\xa0\x80.", "\ufffd\ufffd\ufffd."),  # shaped like a character, a surrogate: shown as elsewhere
        (b"a\xf0\x9f\x99", "a"),  # unfinished at the end
        (b"a\xf0\x9fM", "a\ufffdM"),
        (b"\xe2\x82\xe2\x82", "\ufffd"),
        (b"\xf0\xf0\xf0", "\ufffd\ufffd"),
    ],
)
def test_what_is_shown(data, text):
    assert chat_text(data) == text


def by_definition(data: bytes) -> bytes:
    """The rule read byte by byte: how many a first byte asks for, and where they stop coming."""
    out, at = b"", 0
    while at < len(data):
        first = data[at]
        size = 1 if first < 0x80 else 0 if not 0xC0 <= first < 0xF8 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        taken = 1
        while taken < size and at + taken < len(data) and data[at + taken] & 0xC0 == 0x80:
            taken += 1
        if 0 < taken < size and at + taken == len(data):
            return out
        out += data[at : at + taken] if taken == size else "\ufffd".encode()
        at += taken
    return out


@given(BYTES.map(b"".join))
def test_the_rule_read_byte_by_byte(data):
    assert chat_text(data) == by_definition(data).decode("utf-8", "replace")


@given(BYTES)
def test_any_split_into_tokens_gives_the_same_text(pieces):
    stream = TextStream(chat=True)
    text = "".join(map(stream.push, pieces)) + stream.finish()
    data = b"".join(pieces)
    assert text == (chat_text(data) or data.decode("utf-8", "replace"))


def test_an_answer_of_nothing_but_an_unfinished_character_is_shown():
    alone, behind, begun = TextStream(chat=True), TextStream(chat=True), TextStream(chat=True, begun=True)
    assert [alone.push(b"\xe6"), alone.push(b"\x97"), alone.finish()] == ["", "", "\ufffd"]
    assert [behind.push(b"a"), behind.push(b"\xe6"), behind.finish()] == ["a", "", ""]
    assert [begun.push(b"\xe6"), begun.finish()] == ["", ""]
    stopped = TextStream([" "], chat=True)
    assert [stopped.push(b"\xe6"), stopped.push(b" a"), stopped.stopped] == ["", "\ufffd", True]


@given(st.lists(st.sampled_from([b"a", b"-", b"\xc3", b"\xa9", b"\xf0\x9f"]), max_size=9))
def test_the_released_bytes_are_all_bytes_up_to_the_stop_string(pieces):
    stream, seen = TextStream(["-a"], chat=True), b""
    for piece in pieces:
        stream.push(piece)
        seen += stream.released
    if not stream.stopped:
        stream.finish()
        seen += stream.released
    assert seen == b"".join(pieces).partition(b"-a")[0]
