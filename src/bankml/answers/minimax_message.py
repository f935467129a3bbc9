"""What the tags of a MiniMax M3 answer add up to: values in tags, within each other, become JSON."""

import json
from typing import NamedTuple

from bankml.answers import tags
from bankml.answers.message import MessageCall
from bankml.answers.rope import Rendering, TextRope, appended, appended_rendering, appended_span, escaping


class Level(NamedTuple):
    """An open argument or item, or the call itself: how many members its value has, what closes the value, and whether
    something of it has been written."""

    n_members: int = 0
    closing: str = ""
    begun: bool = True


class MinimaxMessage(NamedTuple):
    reasoning: TextRope | None = None
    content: TextRope | None = None
    calls: tuple[MessageCall, ...] = ()
    levels: tuple[Level, ...] = ()

    def adding(self, arguments: TextRope | None) -> "MinimaxMessage":
        return self._replace(calls=(*self.calls[:-1], self.calls[-1]._replace(arguments=arguments)))

    @property
    def arguments(self) -> TextRope | None:
        return self.calls[-1].arguments


class MinimaxMeaning:
    """The tags of a MiniMax M3 answer."""

    def __init__(self) -> None:
        self._renderings: dict[int, Rendering] = {}

    def entered(self, tag: str, state: MinimaxMessage, at: int) -> MinimaxMessage:
        if tag == tags.TOOL:
            return state._replace(levels=(Level(closing="}"),))
        if tag == tags.ARGUMENT:
            return state._replace(levels=(*state.levels, Level()))
        if tag == tags.ITEM:
            return state._replace(levels=(*state.levels, Level(begun=False)))
        if tag in (tags.OBJECT, tags.ARRAY):
            opening, closing = "{}" if tag == tags.OBJECT else "[]"
            state = _begun(state)
            state = state.adding(appended(state.arguments, opening))
            return state._replace(levels=(*state.levels[:-1], Level(closing=closing)))
        if tag == tags.STRING_VALUE:
            state = _begun(state)
            state = state.adding(appended(state.arguments, '"'))
            return state._replace(levels=(*state.levels[:-1], Level(closing='"')))
        return state

    def left(
        self, tag: str, before: MinimaxMessage, state: MinimaxMessage, text: str, begin: int, end: int, complete: bool
    ) -> MinimaxMessage:
        if tag == tags.CONTENT:
            return state._replace(content=appended_span(state.content, begin, end))
        if tag == tags.REASONING:
            return state._replace(reasoning=appended_span(state.reasoning, begin, end))
        if tag == tags.TOOL_NAME:
            return state._replace(calls=(*state.calls, MessageCall(text[begin:end], "", appended(None, "{"))))
        if tag == tags.ARGUMENT_NAME:
            parent = state.levels[-2]
            key = json.dumps(text[begin:end], ensure_ascii=False)
            state = state.adding(appended(state.arguments, ("," if parent.n_members else "") + key + ":"))
            levels = (*state.levels[:-2], parent._replace(n_members=parent.n_members + 1), state.levels[-1])
            return state._replace(levels=levels)
        if tag == tags.STRING_VALUE and begin != end:
            rendering = self._renderings.setdefault(begin, Rendering(begin, escaping))
            return state.adding(appended_rendering(state.arguments, rendering, rendering.length(text, end)))
        if tag == tags.VALUE and begin != end:
            state = _begun(state)
            return state.adding(appended_span(state.arguments, begin, end))
        if tag in (tags.ARGUMENT, tags.ITEM, tags.TOOL) and complete:
            state = state.adding(appended(state.arguments, state.levels[-1].closing))
            return state._replace(levels=state.levels[:-1])
        return state


def _begun(state: MinimaxMessage) -> MinimaxMessage:
    """An item's value begins: it is a member now, and a comma precedes it where it is not the first."""
    level = state.levels[-1]
    if level.begun:
        return state
    parent = state.levels[-2]
    levels = (*state.levels[:-2], parent._replace(n_members=parent.n_members + 1), level._replace(begun=True))
    if parent.n_members:
        state = state.adding(appended(state.arguments, ","))
    return state._replace(levels=levels)
