"""What a template writes before a user's and an assistant's message, found as llama.cpp b11192 finds it.

llama-server cuts the prompts of models with a sliding window where a user's message begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bankml.answers.families import family_of
from bankml.text.markers import difference, is_marker, segments, trim
from bankml.text.reasoning import Render, compared_marks
from bankml.text.template import ChatTemplate

_USER, _OTHER_USER, _ANSWER = "U_USER_MSG Hello END_U", "V_USER_MSG Hello END_V", "A_ASST_MSG I can help END_A"


@dataclass(frozen=True)
class MessageStarts:
    """The texts before a message of each role, white space around them left out; "" for none."""

    assistant: str = ""
    user: str = ""


def message_starts(template: ChatTemplate) -> MessageStarts:
    """Those of a template; none of one that the reference parses by a parser of its own."""

    def find() -> MessageStarts:
        if family_of(template.source) is not None:
            return MessageStarts()
        return MessageStarts(
            _assistant_start(template.probe, template.capabilities.tool_calls), _user_start(template.probe)
        )

    found = template.remembered("message starts", find)
    assert isinstance(found, MessageStarts)
    return found


def user_starts(tokens: Sequence[int], assistant: Sequence[int], user: Sequence[int]) -> tuple[int, ...]:
    """The positions at which the start of a user's message, as tokens, stands and that of an assistant's does not."""

    def stands(start: Sequence[int], at: int) -> bool:
        return bool(start) and list(tokens[at : at + len(start)]) == list(start)

    return tuple(at for at in range(len(tokens)) if stands(user, at) and not stands(assistant, at))


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _compared(render: Render, left: Sequence[dict[str, str]], right: Sequence[dict[str, str]]) -> str | None:
    """What `right` has and `left` has not; None where the template cannot render one of them."""
    a, b = render(left, False, True, ()), render(right, False, True, ())
    return None if a is None or b is None else difference(a, b).right


def _before(text: str, mark: str) -> str:
    at = text.find(mark)
    return text if at < 0 else text[:at]


def _assistant_start(render: Render, tool_calls: bool) -> str:
    user = _message("user", _USER)
    added = _compared(render, [user], [user, _message("assistant", _ANSWER)])
    if added is None:
        return ""
    start, marks = _before(added, _ANSWER), compared_marks(render, tool_calls)
    for mark in (marks.start, marks.end):
        if mark:
            start = _before(start, trim(mark))
    return trim(start)


def _user_start(render: Render) -> str:
    user, first = _message("user", _USER), [_message("user", _OTHER_USER), _message("assistant", _ANSWER)]
    added = _compared(render, [], [user])
    if added is None:
        added = _compared(render, first, [*first, user])
    if added is None:
        return ""
    if _ANSWER in added:
        added = added[added.index(_ANSWER) + len(_ANSWER) :]
    kept, begun = [], False
    for segment in segments(_before(added, _USER)):
        marker = is_marker(segment)
        ends = marker and any(word in segment.lower() for word in ("end", "close"))
        if not begun and (ends or not trim(segment)):
            continue
        begun = begun or marker
        kept.append(segment)
    return trim("".join(kept))
