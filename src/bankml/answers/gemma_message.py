"""What the tags of a Gemma 4 answer add up to: its notation of values becomes JSON."""

from typing import NamedTuple

from bankml.answers import tags
from bankml.answers.message import MessageCall
from bankml.answers.rope import Rendering, TextRope, appended, appended_rendering, appended_span, escaping

RULES = "gemma4-"
DICT, ARRAY, PAIR, VALUE = "gemma4-dict", "gemma4-array", "gemma4-dict-kv", "gemma4-value"
STRING, KEY = "gemma4-string", "gemma4-dict-key"
TEXTS = ("gemma4-string-content", "gemma4-dict-key-name")
PLAIN = ("gemma4-number", "gemma4-bool", "gemma4-null")
OPENING = {DICT: "{", ARRAY: "[", STRING: '"', KEY: '"'}
CLOSING = {DICT: "}", ARRAY: "]", STRING: '"', KEY: '":'}


class GemmaMessage(NamedTuple):
    """`name` is that of the open call. `containers` are the open values, each with the count of its members."""

    reasoning: TextRope | None = None
    content: TextRope | None = None
    calls: tuple[MessageCall, ...] = ()
    name: str = ""
    containers: tuple[tuple[str, int], ...] = ()

    def adding(self, arguments: TextRope | None) -> "GemmaMessage":
        return self._replace(calls=(*self.calls[:-1], self.calls[-1]._replace(arguments=arguments)))

    @property
    def arguments(self) -> TextRope | None:
        return self.calls[-1].arguments


class GemmaMeaning:
    """The tags of a Gemma 4 answer."""

    def __init__(self) -> None:
        self._renderings: dict[tuple[str, int], Rendering] = {}

    def entered(self, tag: str, state: GemmaMessage, at: int) -> GemmaMessage:
        if tag == tags.TOOL_ARGUMENTS:
            return state._replace(calls=(*state.calls, MessageCall(state.name, "", None)), containers=())
        parent = state.containers[-1] if state.containers else ("", 0)
        if tag == PAIR or (tag == VALUE and parent[0] == ARRAY):
            containers = (*state.containers[:-1], (parent[0], parent[1] + 1))
            state = state._replace(containers=containers)
            if parent[1]:
                state = state.adding(appended(state.arguments, ","))
        if tag in OPENING:
            state = state.adding(appended(state.arguments, OPENING[tag]))
        return state._replace(containers=(*state.containers, (tag, 0))) if tag in (DICT, ARRAY, PAIR) else state

    def left(
        self, tag: str, before: GemmaMessage, state: GemmaMessage, text: str, begin: int, end: int, complete: bool
    ) -> GemmaMessage:
        if tag == tags.CONTENT:
            return state._replace(content=appended_span(state.content, begin, end))
        if tag == tags.REASONING:
            return state._replace(reasoning=appended_span(state.reasoning, begin, end))
        if tag == tags.TOOL_NAME:
            return state._replace(name=text[begin:end])
        if not tag.startswith(RULES):
            return state
        if tag in (DICT, ARRAY, PAIR):
            state = state._replace(containers=state.containers[:-1])
        if begin == end and tag in OPENING:
            return state.adding(before.arguments)
        if tag in TEXTS:
            rendering = self._renderings.get((tag, begin))
            if rendering is None:
                rendering = self._renderings[tag, begin] = Rendering(begin, escaping)
            return state.adding(appended_rendering(state.arguments, rendering, rendering.length(text, end)))
        if tag in PLAIN:
            return state.adding(appended_span(state.arguments, begin, end))
        if complete and tag in CLOSING:
            return state.adding(appended(state.arguments, CLOSING[tag]))
        return state
