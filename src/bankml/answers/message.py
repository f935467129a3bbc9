"""What the tags of an answer's parse add up to: reasoning, content and tool calls."""

import json
from typing import NamedTuple

from bankml.answers import tags
from bankml.answers.rope import (
    Rendering,
    TextRope,
    appended,
    appended_rendering,
    appended_span,
    escaping,
    normalizing,
    text_of,
)
from bankml.text.markers import WHITE_SPACE

NO_CALL, UNNAMED, NAMED = range(3)


class MessageCall(NamedTuple):
    """`id` is the model's own, "" for none."""

    name: str
    id: str
    arguments: TextRope | None


class Message(NamedTuple):
    """`stage`: whether a call is open, and named yet; `call_id` and `early` are the id and the arguments of one without
    a name. `n_arguments` counts the open call's arguments in tags, `quote`: its last value lacks its closing quote."""

    reasoning: TextRope | None = None
    content: TextRope | None = None
    calls: tuple[MessageCall, ...] = ()
    stage: int = NO_CALL
    call_id: str = ""
    early: TextRope | None = None
    n_arguments: int = 0
    quote: bool = False

    def with_arguments(self, arguments: TextRope | None) -> "Message":
        if self.stage != NAMED:
            return self._replace(early=arguments)
        return self._replace(calls=(*self.calls[:-1], self.calls[-1]._replace(arguments=arguments)))

    @property
    def arguments(self) -> TextRope | None:
        return self.calls[-1].arguments if self.stage == NAMED else self.early


class NativeMeaning:
    """The tags of most formats."""

    def __init__(self) -> None:
        self._renderings: dict[tuple[str, int], Rendering] = {}
        self._depth: tuple[TextRope | None, int] = (None, 0)

    def entered(self, tag: str, state: Message, at: int) -> Message:
        if tag == tags.TOOL_OPEN:
            return state._replace(stage=UNNAMED, call_id="", early=None, n_arguments=0, quote=False)
        if tag == tags.ARGUMENT_OPEN:
            return state._replace(quote=False)
        return state

    def left(
        self, tag: str, before: Message, state: Message, text: str, begin: int, end: int, complete: bool
    ) -> Message:
        if tag == tags.CONTENT:
            return state._replace(content=appended_span(state.content, begin, end))
        if tag == tags.REASONING:
            return state._replace(reasoning=appended_span(state.reasoning, begin, end))
        if state.stage == NO_CALL:
            return state
        if tag == tags.TOOL_ARGUMENTS:
            return self._object(before, state, text, begin, end)
        if tag in (tags.VALUE, tags.STRING_VALUE):
            return self._value(tag, state, text, begin, end)
        if tag == tags.TOOL_NAME:
            return _named(state, text[begin:end].rstrip(WHITE_SPACE))
        if tag == tags.TOOL_ID:
            return _identified(state, text[begin:end].rstrip(WHITE_SPACE))
        if tag == tags.ARGUMENT_NAME:
            return _argument(state, text[begin:end])
        if tag == tags.ARGUMENT_CLOSE and state.quote:
            return state.with_arguments(appended(state.arguments, '"'))._replace(quote=False)
        return self._closed(state, text) if tag == tags.TOOL_CLOSE else state

    def _object(self, before: Message, state: Message, text: str, begin: int, end: int) -> Message:
        """Arguments that are one JSON object, without the white space at their end."""
        if begin == end or text[begin] != "{":
            return state
        while text[end - 1] in WHITE_SPACE:
            end -= 1
        return state.with_arguments(appended_span(None, begin, end))

    def _value(self, tag: str, state: Message, text: str, begin: int, end: int) -> Message:
        arguments, quote = state.arguments, state.quote
        string = tag == tags.STRING_VALUE
        if string and not quote:
            arguments, quote = appended(arguments, '"'), True
        if begin == end:
            if string and state.quote:
                arguments = appended(arguments, '"')
            return state.with_arguments(arguments)._replace(quote=quote)
        rendering = self._renderings.get((tag, begin))
        if rendering is None:
            rendering = self._renderings[tag, begin] = Rendering(begin, escaping if string else normalizing)
        arguments = appended_rendering(arguments, rendering, rendering.length(text, end))
        return state.with_arguments(arguments)._replace(quote=quote)

    def _closed(self, state: Message, text: str) -> Message:
        if state.stage == UNNAMED:
            return state._replace(stage=NO_CALL)
        arguments = appended(state.arguments, '"') if state.quote else state.arguments
        return state.with_arguments(appended(arguments, "}" * self._open_braces(arguments, text)))._replace(quote=False)

    def _open_braces(self, arguments: TextRope | None, text: str) -> int:
        if self._depth[0] is not arguments:
            self._depth = (arguments, open_braces(text_of(arguments, text)))
        return self._depth[1]


def _named(state: Message, name: str) -> Message:
    arguments = state.early or appended(None, "{")
    return state._replace(stage=NAMED, calls=(*state.calls, MessageCall(name, state.call_id, arguments)), early=None)


def _identified(state: Message, text: str) -> Message:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if state.stage == NAMED:
        return state._replace(calls=(*state.calls[:-1], state.calls[-1]._replace(id=text)))
    return state._replace(call_id=text)


def _argument(state: Message, text: str) -> Message:
    if text[:1] in WHITE_SPACE:
        text = text[1:]
    key = json.dumps(text.rstrip(WHITE_SPACE), ensure_ascii=False)
    arguments = state.arguments or appended(None, "{")
    comma = "," if state.n_arguments else ""
    return state.with_arguments(appended(arguments, f"{comma}{key}:"))._replace(n_arguments=state.n_arguments + 1)


def open_braces(text: str) -> int:
    """How many braces of a JSON text are not closed."""
    depth, quoted, skip = 0, False, False
    for character in text:
        if skip:
            skip = False
        elif character == "\\" and quoted:
            skip = True
        elif character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character == "{") - (character == "}")
    return max(depth, 0)
