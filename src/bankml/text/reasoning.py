"""What a template writes around an assistant's reasoning, found as llama.cpp b11192 finds it: by comparing renderings
that differ in one thing."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_USER = {"role": "user", "content": "U_USER_MSG Hello END_U"}
_ANSWER = {"role": "assistant", "content": "A_ASST_MSG I can help END_A"}
_REASONING = "REASON_PART I am thinking END_R"
_ARGUMENTS = {"AA_ARG_FST_AA": "VVVV", "BB_ARG_SND_BB": "XXXX"}
_ANCHOR = 64

_WHITE_SPACE = " \t\n\v\f\r"
_SPACE = rf"[{_WHITE_SPACE}]*"
_MARKER = r"(?:<[^>]*>|\[[^\]]*\])"

Render = Callable[[Sequence[Mapping[str, Any]], bool, bool, Sequence[Mapping[str, Any]]], str | None]
"""Renders (messages, add_generation_prompt, enable_thinking, tools); None if the template fails."""


@dataclass(frozen=True)
class ReasoningMarks:
    """`start` and `end`, white space included; "" for a missing mark."""

    start: str = ""
    end: str = ""


def reasoning_marks(source: str, render: Render, tool_calls: bool) -> ReasoningMarks:
    marks, found = _around_reasoning(render)
    marks, found = _by_toggling_thinking(render, marks, found)
    if tool_calls:
        marks, found = _beside_tool_calls(render, marks, found)
    old_thinking = "content.split('</think>')" in source and "reasoning_content" not in source
    if old_thinking and "<SPECIAL_12>" not in source and not found:
        marks = ReasoningMarks("<think>", "</think>")
    return _corrected(source, marks)


def _corrected(source: str, marks: ReasoningMarks) -> ReasoningMarks:
    """Corrections of the reference: templates that write marks their models do not use."""
    if "Write your thoughts between <think></think> and write your response between <response></response>" in source:
        return ReasoningMarks("<think>", "</think>")
    if all(text in source for text in ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>")):
        return ReasoningMarks("<think>\n", "</think>")
    if "laguna_glm_thinking" in source:
        return ReasoningMarks(_trim(marks.start), _trim(marks.end))
    return marks


def _around_reasoning(render: Render) -> tuple[ReasoningMarks, bool]:
    without = render([_USER, _ANSWER], False, True, ())
    with_it = render([_USER, _ANSWER | {"reasoning_content": _REASONING}], False, True, ())
    if without is None or with_it is None or _REASONING not in with_it:
        return ReasoningMarks(), False
    if (wrapped := _wrapped(with_it)) is not None:
        return wrapped, True
    ended = re.search(f"{_REASONING}{_SPACE}({_MARKER}{_SPACE})", with_it)
    return (ReasoningMarks("", ended[1]), True) if ended else (ReasoningMarks(), False)


def _wrapped(text: str) -> ReasoningMarks | None:
    """The first match of `({_MARKER}{_SPACE}){_REASONING}({_SPACE}{_MARKER}{_SPACE})`, without searching every
    unclosed bracket."""
    found: dict[int, ReasoningMarks] = {}
    for reasoning_at in re.finditer(f"{_REASONING}({_SPACE}{_MARKER}{_SPACE})", text):
        start = _marker_before(text, reasoning_at.start())
        if start >= 0:
            found[start] = ReasoningMarks(text[start : reasoning_at.start()], reasoning_at[1])
    return found[min(found)] if found else None


def _marker_before(text: str, at: int) -> int:
    """The start of the marker that ends, ignoring white space, at `at`: -1 if there is none."""
    last = at - 1
    while last >= 0 and text[last] in _WHITE_SPACE:
        last -= 1
    opening = {">": "<", "]": "["}.get(text[last : last + 1], "")
    return text.find(opening, text.rfind(text[last], 0, last) + 1, last) if opening else -1


def _by_toggling_thinking(render: Render, marks: ReasoningMarks, found: bool) -> tuple[ReasoningMarks, bool]:
    off, on = render([_USER], True, False, ()), render([_USER], True, True, ())
    if off is None or on is None:
        return marks, found
    only_off, only_on = _difference(off, on)
    if not _trim(only_off) and only_on:
        if _trim(only_on) and on.endswith(_trim(only_on)) and not marks.start:
            return ReasoningMarks(only_on, marks.end), True
    elif not _trim(only_on) and only_off:
        if _trim(only_off) and off.endswith(_trim(only_off)) and not marks.end:
            segments = _segments_with_text(off)
            shown = len(segments) >= 2 and segments[-1] == _trim(only_off) and _is_marker(segments[-2])
            return ReasoningMarks(segments[-2] if shown else marks.start, only_off), True
    elif _trim(only_off) and _trim(only_on):
        for base, extended in ((on, off), (off, on)):
            anchor = base[-_ANCHOR:]
            at = extended.rfind(anchor)
            if at < 0 or at + len(anchor) >= len(extended):
                continue
            extra = _segments_with_text(_trim(extended[at + len(anchor) :]))
            if len(extra) == 2 and _is_marker(extra[0]) and _is_marker(extra[1]):
                return ReasoningMarks(marks.start or extra[0], marks.end or extra[1]), True
    return marks, found or bool(marks.end)


def _beside_tool_calls(render: Render, marks: ReasoningMarks, found: bool) -> tuple[ReasoningMarks, bool]:
    """Some templates show reasoning only where tools are called."""
    call = {
        "id": "call00001",
        "type": "function",
        "function": {"name": "FFF_FIRST_FUN_F", "arguments": _ARGUMENTS},
    }
    plain = render([_USER, _ANSWER | {"reasoning_content": _REASONING}], False, True, _tools())
    calling = {"role": "assistant", "content": None, "reasoning_content": _REASONING, "tool_calls": [call]}
    with_call = render([_USER, calling], False, True, _tools())
    if plain is None or with_call is None or _REASONING in plain or _REASONING not in with_call:
        return marks, found
    if (wrapped := _wrapped(with_call)) is not None:
        return ReasoningMarks(wrapped.start, wrapped.end.lstrip(_WHITE_SPACE)), True
    ended = re.search(f"{_REASONING}{_SPACE}({_MARKER}{_SPACE})", with_call)
    return (ReasoningMarks(marks.start, ended[1]), True) if ended else (marks, False)


def _tools() -> list[dict[str, Any]]:
    properties = {
        "AA_ARG_FST_AA": {"type": "string", "description": "First argument"},
        "BB_ARG_SND_BB": {"type": "string", "description": "Second argument"},
    }
    schema = {"type": "object", "properties": properties, "required": []}
    named = (("FFF_FIRST_FUN_F", "Test function foo"), ("SSS_SECOND_FUN_S", "Test function bar"))
    return [
        {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
        for name, description in named
    ]


def common_prefix_size(left: str, right: str) -> int:
    """Length of the common prefix in characters."""
    size, most, step = 0, min(len(left), len(right)), 1 << 16
    while step:
        while size + step <= most and left[size : size + step] == right[size : size + step]:
            size += step
        step //= 2
    return size


def _trim(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def _segments(text: str) -> list[str]:
    """`text` cut into markers (<…> and […]) and the text between them; after an unclosed marker nothing is cut."""
    segments, border, closing = [], 0, ""
    for at, character in enumerate(text):
        if not closing and character in "<[":
            if border < at:
                segments.append(text[border:at])
            border, closing = at, ">" if character == "<" else "]"
        elif closing and character == closing:
            segments.append(text[border : at + 1])
            border, closing = at + 1, ""
    return [*segments, text[border:]] if border < len(text) else segments


def _segments_with_text(text: str) -> list[str]:
    return [segment for segment in _segments(text) if _trim(segment)]


def _is_marker(segment: str) -> bool:
    return (segment[0], segment[-1]) in (("<", ">"), ("[", "]"))


def _difference(left: str, right: str) -> tuple[str, str]:
    """What differs between `left` and `right`: each without their common prefix and common suffix.

    Segments are compared from both ends at once, as in the reference, which decides about a segment that belongs to
    both prefix and suffix; then single characters are.
    """
    a, b = _segments(left), _segments(right)
    if not a or not b:
        return left, right
    begin_a, end_a, begin_b, end_b = 0, len(a) - 1, 0, len(b) - 1
    done_a = done_b = False
    advanced = True
    while advanced and begin_a != end_a and begin_b != end_b:
        advanced = False
        if a[begin_a] == b[begin_b]:
            begin_a, begin_b, advanced = begin_a + 1, begin_b + 1, True
        if a[end_a] == b[end_b]:
            done_a, done_b, advanced = done_a or begin_a == end_a, done_b or begin_b == end_b, True
            end_a, end_b = max(end_a - 1, begin_a), max(end_b - 1, begin_b)
    if begin_a == end_a and begin_b != end_b:
        if a[begin_a] == b[end_b]:
            end_b, done_a = end_b - 1, True
        elif a[begin_a] == b[begin_b]:
            begin_b, done_a = begin_b + 1, True
    elif begin_b == end_b and begin_a != end_a:
        if a[end_a] == b[begin_b]:
            end_a, done_b = end_a - 1, True
        elif a[begin_a] == b[begin_b]:
            begin_a, done_b = begin_a + 1, True
    elif begin_a == end_a and begin_b == end_b and a[begin_a] == b[begin_b] and _is_marker(a[begin_a]):
        done_a = done_b = True
    rest_a, rest_b = "".join(a[begin_a : end_a + (not done_a)]), "".join(b[begin_b : end_b + (not done_b)])
    ends_are_text = not _is_marker(a[end_a]) and not _is_marker(b[end_b])
    begins_are_text = not _is_marker(a[begin_a]) and not _is_marker(b[begin_b])
    suffix = common_prefix_size(rest_a[::-1], rest_b[::-1]) if ends_are_text else 0
    rest_a, rest_b = rest_a[: len(rest_a) - suffix], rest_b[: len(rest_b) - suffix]
    prefix = common_prefix_size(rest_a, rest_b) if begins_are_text else 0
    only_left, only_right = rest_a[prefix:], rest_b[prefix:]
    if not only_left and only_right and right.startswith(left):
        return "", right[len(left) :]
    return only_left, only_right
