import pytest

from bankml.text.spaces import cleaned


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (b"a , b . c ! d ?", b"a, b. c! d?"),
        (b"it 's he 'll I 'm we 're they 've don 't he 'd", b"it's he 'll I'm we're they've don 't he 'd"),
        (b"a ' b", b"a'b"),
        (b" ,", b","),
        (b", a", b", a"),
        (b"a  .", b"a ."),
        (b"' s", b"' s"),
        (b"x 'r", b"x 'r"),
        (b"", b""),
        (b" ", b" "),
    ],
)
def test_what_is_left_out(text, left):
    assert cleaned(text) == left
