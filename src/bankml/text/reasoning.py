"""What a template writes around an assistant's reasoning, found as llama.cpp b11192 finds it: by comparing renderings
that differ in one thing."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bankml.text.markers import WHITE_SPACE as _WHITE_SPACE
from bankml.text.markers import difference, is_marker, segments_with_text
from bankml.text.markers import trim as _trim

_USER = {"role": "user", "content": "U_USER_MSG Hello END_U"}
_ANSWER = {"role": "assistant", "content": "A_ASST_MSG I can help END_A"}
_REASONING = "REASON_PART I am thinking END_R"
_ARGUMENTS = {"AA_ARG_FST_AA": "VVVV", "BB_ARG_SND_BB": "XXXX"}
_ANCHOR = 64

_SPACE = rf"[{_WHITE_SPACE}]*"
_MARKER = r"(?:<[^>]*>|\[[^\]]*\])"

Render = Callable[[Sequence[Mapping[str, Any]], bool, bool, Sequence[Mapping[str, Any]]], str | None]
"""Renders (messages, add_generation_prompt, enable_thinking, tools); None if the template fails."""


@dataclass(frozen=True)
class ReasoningMarks:
    """`start` and `end`, white space included; "" for a mark there is none of. `thinks`: the template is one of a model
    that reasons."""

    start: str = ""
    end: str = ""
    thinks: bool = False


def reasoning_marks(source: str, render: Render, tool_calls: bool) -> ReasoningMarks:
    """The marks of the template of this `source`. `tool_calls`: it shows tool calls."""
    return corrected_marks(source, compared_marks(render, tool_calls))


def compared_marks(render: Render, tool_calls: bool) -> ReasoningMarks:
    """The marks as the comparisons have them."""
    marks, found = _around_reasoning(render)
    marks, found = _by_toggling_thinking(render, marks, found)
    if tool_calls:
        marks, found = _beside_tool_calls(render, marks, found)
    return ReasoningMarks(marks.start, marks.end, found)


def is_old_thinking(source: str) -> bool:
    """Older Qwen and DeepSeek templates do not show a thought, though their models think."""
    shows = "content.split('</think>')" in source and "reasoning_content" not in source
    return shows and "<SPECIAL_12>" not in source


def corrected_marks(source: str, marks: ReasoningMarks) -> ReasoningMarks:
    """What the reference knows better than its comparison: templates that write marks their models do not."""
    if is_old_thinking(source) and not marks.thinks:
        marks = ReasoningMarks("<think>", "</think>", True)
    if "Write your thoughts between <think></think> and write your response between <response></response>" in source:
        return ReasoningMarks("<think>", "</think>", True)
    if all(text in source for text in ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>")):
        return ReasoningMarks("<think>\n", "</think>", True)
    if "laguna_glm_thinking" in source:
        return ReasoningMarks(_trim(marks.start), _trim(marks.end), marks.thinks)
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
    split = difference(off, on)
    only_off, only_on = split.left, split.right
    if not _trim(only_off) and only_on:
        if _trim(only_on) and on.endswith(_trim(only_on)) and not marks.start:
            return ReasoningMarks(only_on, marks.end), True
    elif not _trim(only_on) and only_off:
        if _trim(only_off) and off.endswith(_trim(only_off)) and not marks.end:
            segments = segments_with_text(off)
            shown = len(segments) >= 2 and segments[-1] == _trim(only_off) and is_marker(segments[-2])
            return ReasoningMarks(segments[-2] if shown else marks.start, only_off), True
    elif _trim(only_off) and _trim(only_on):
        for base, extended in ((on, off), (off, on)):
            anchor = base[-_ANCHOR:]
            at = extended.rfind(anchor)
            if at < 0 or at + len(anchor) >= len(extended):
                continue
            extra = segments_with_text(_trim(extended[at + len(anchor) :]))
            if len(extra) == 2 and is_marker(extra[0]) and is_marker(extra[1]):
                return ReasoningMarks(marks.start or extra[0], marks.end or extra[1]), True
    return marks, found or bool(marks.end)


def _beside_tool_calls(render: Render, marks: ReasoningMarks, found: bool) -> tuple[ReasoningMarks, bool]:
    """Some templates show reasoning only where tools are called."""
    call = {
        "id": "call00001",
        "type": "function",
        "function": {"name": "FFF_FIRST_FUN_F", "arguments": _ARGUMENTS},
    }
    plain = render([_USER, _ANSWER | {"reasoning_content": _REASONING}], False, True, probe_tools())
    calling = {"role": "assistant", "content": None, "reasoning_content": _REASONING, "tool_calls": [call]}
    with_call = render([_USER, calling], False, True, probe_tools())
    if plain is None or with_call is None or _REASONING in plain or _REASONING not in with_call:
        return marks, found
    if (wrapped := _wrapped(with_call)) is not None:
        return ReasoningMarks(wrapped.start, wrapped.end.lstrip(_WHITE_SPACE)), True
    ended = re.search(f"{_REASONING}{_SPACE}({_MARKER}{_SPACE})", with_call)
    return (ReasoningMarks(marks.start, ended[1]), True) if ended else (marks, False)


def probe_tools() -> list[dict[str, Any]]:
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
