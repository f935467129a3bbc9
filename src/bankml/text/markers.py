"""Markers (`<…>` and `[…]`) in rendered templates, and what two renderings have in common, as b11192 compares them."""

from dataclasses import dataclass

WHITE_SPACE = " \t\n\v\f\r"
"""What C's isspace accepts."""


@dataclass(frozen=True)
class Difference:
    """Two texts: `prefix` and `suffix` are common, `left` and `right` stand between them."""

    prefix: str
    suffix: str
    left: str
    right: str


def trim(text: str) -> str:
    return text.strip(WHITE_SPACE)


def segments(text: str) -> list[str]:
    """`text` cut into markers and what is between them; after a marker that is not closed, nothing is cut."""
    out, border, closing = [], 0, ""
    for at, character in enumerate(text):
        if not closing and character in "<[":
            if border < at:
                out.append(text[border:at])
            border, closing = at, ">" if character == "<" else "]"
        elif closing and character == closing:
            out.append(text[border : at + 1])
            border, closing = at + 1, ""
    return [*out, text[border:]] if border < len(text) else out


def segments_with_text(text: str) -> list[str]:
    """Segments that are not white space alone."""
    return [segment for segment in segments(text) if trim(segment)]


def is_marker(segment: str) -> bool:
    return (segment[0], segment[-1]) in (("<", ">"), ("[", "]"))


def common_prefix_size(left: str, right: str) -> int:
    """How many characters both begin with."""
    size, most, step = 0, min(len(left), len(right)), 1 << 16
    while step:
        while size + step <= most and left[size : size + step] == right[size : size + step]:
            size += step
        step //= 2
    return size


def difference(left: str, right: str) -> Difference:
    """Compares segments from both ends at once, as the reference does: that decides where a segment belongs that both
    ends could claim. Only the texts that remain are compared character by character."""
    a, b = segments(left), segments(right)
    if not a:
        return Difference("", "", "", right)
    if not b:
        return Difference("", "", left, "")
    begin_a, end_a, begin_b, end_b = 0, len(a) - 1, 0, len(b) - 1
    done_a = done_b = False
    advanced = True
    suffix: list[str] = []
    while advanced and begin_a != end_a and begin_b != end_b:
        advanced = False
        if a[begin_a] == b[begin_b]:
            begin_a, begin_b, advanced = begin_a + 1, begin_b + 1, True
        if a[end_a] == b[end_b]:
            suffix.append(a[end_a])
            done_a, done_b, advanced = done_a or begin_a == end_a, done_b or begin_b == end_b, True
            end_a, end_b = max(end_a - 1, begin_a), max(end_b - 1, begin_b)
    prefix = "".join(a[:begin_a])
    if begin_a == end_a and begin_b != end_b:
        if a[begin_a] == b[end_b]:
            suffix.append(b[end_b])
            end_b, done_a = end_b - 1, True
        elif a[begin_a] == b[begin_b]:
            prefix, begin_b, done_a = prefix + b[begin_b], begin_b + 1, True
    elif begin_b == end_b and begin_a != end_a:
        if a[end_a] == b[begin_b]:
            suffix.append(a[end_a])
            end_a, done_b = end_a - 1, True
        elif a[begin_a] == b[begin_b]:
            prefix, begin_a, done_b = prefix + a[begin_a], begin_a + 1, True
    elif begin_a == end_a and begin_b == end_b and a[begin_a] == b[begin_b] and is_marker(a[begin_a]):
        prefix, done_a, done_b = prefix + a[begin_a], True, True
    rest_a, rest_b = "".join(a[begin_a : end_a + (not done_a)]), "".join(b[begin_b : end_b + (not done_b)])
    ends_are_text = not is_marker(a[end_a]) and not is_marker(b[end_b])
    begins_are_text = not is_marker(a[begin_a]) and not is_marker(b[begin_b])
    n_suffix = common_prefix_size(rest_a[::-1], rest_b[::-1]) if ends_are_text else 0
    tail = rest_a[len(rest_a) - n_suffix :] + "".join(reversed(suffix))
    rest_a, rest_b = rest_a[: len(rest_a) - n_suffix], rest_b[: len(rest_b) - n_suffix]
    n_prefix = common_prefix_size(rest_a, rest_b) if begins_are_text else 0
    prefix, rest_a, rest_b = prefix + rest_a[:n_prefix], rest_a[n_prefix:], rest_b[n_prefix:]
    if not rest_a and not rest_b:
        prefix, tail = left, ""
    if not rest_a and rest_b and right.startswith(left):
        return Difference(left, "", "", right[len(left) :])
    return Difference(prefix, tail, rest_a, rest_b)
