"""How a template writes tool calls and content, found as llama.cpp b11192 finds it: by comparing renderings that differ
in one thing. The texts of the probes matter, since what is found depends on them."""

import re
from dataclasses import dataclass, replace

from bankml.answers import tool_format
from bankml.answers.tool_format import MARKER, SPACE, ToolFormat
from bankml.text.capabilities import Capabilities
from bankml.text.markers import WHITE_SPACE, trim
from bankml.text.reasoning import ReasoningMarks, Render, compared_marks, corrected_marks, is_old_thinking

ANSWER = tool_format.ANSWER
THOUGHT = tool_format.THOUGHT


@dataclass(frozen=True)
class ContentMarks:
    """What stands around an answer's content; both "" for nothing."""

    start: str = ""
    end: str = ""

    @property
    def wrapped(self) -> bool:
        return bool(self.start and self.end)


@dataclass(frozen=True)
class TemplateAnalysis:
    """What a template writes. `preserved` are the markers whose tokens have a text in an answer, `stops` strings that
    end an answer besides the request's. `openai_wrapper`: calls may begin with `"type": "function"`."""

    reasoning: ReasoningMarks
    content: ContentMarks
    tools: ToolFormat
    preserved: tuple[str, ...]
    stops: tuple[str, ...] = ()
    openai_wrapper: bool = False


def analyse(source: str, render: Render, capabilities: Capabilities) -> TemplateAnalysis:
    """The analysis of the template of this `source`."""
    reasoning = compared_marks(render, capabilities.tool_calls)
    content = _content(render, reasoning)
    tools = tool_format.find(render, reasoning, capabilities) if capabilities.tool_calls else ToolFormat()
    found = TemplateAnalysis(reasoning, content, tools, _preserved(reasoning, content, tools))
    return _corrected(source, found)


def _content(render: Render, reasoning: ReasoningMarks) -> ContentMarks:
    probe = tool_format.Probe(render)
    call = tool_format.call("test_func", {"arg1": "value1"})
    plain = {"role": "assistant", "content": ANSWER}
    calling = {"role": "assistant", "content": "", "tool_calls": [call]}
    thinking = {"role": "assistant", "content": "", "reasoning_content": THOUGHT}
    by_tools, by_thought = probe.compare(plain, calling), probe.compare(plain, thinking)
    if by_tools is None or by_thought is None:
        return ContentMarks()
    only = by_thought.left
    if trim(by_tools.left) == ANSWER:
        # `only` by itself, perhaps with a marker behind it
        if only == only.lstrip(WHITE_SPACE):
            return ContentMarks()
        if reasoning.thinks and reasoning.end and re.search(f"{re.escape(reasoning.end)}{SPACE}{ANSWER}", only):
            return ContentMarks()
    if reasoning.end and reasoning.end in only:
        only = only.partition(reasoning.end)[2]
    longer = only if _size(only) > _size(by_tools.left) else by_tools.left
    found = re.search(f"({MARKER}{SPACE}){ANSWER}{SPACE}({MARKER}{SPACE})", longer, re.DOTALL)
    return ContentMarks(found[1], found[2]) if found else ContentMarks()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _preserved(reasoning: ReasoningMarks, content: ContentMarks, tools: ToolFormat) -> tuple[str, ...]:
    marks = (reasoning.start, reasoning.end, content.start, content.end, *tools.markers)
    return tuple(dict.fromkeys(mark for mark in map(trim, marks) if mark))


def _corrected(source: str, found: TemplateAnalysis) -> TemplateAnalysis:
    """What the reference knows better than its comparisons, by texts in the source."""
    reasoning = corrected_marks(source, found.reasoning)
    if is_old_thinking(source) and not found.reasoning.thinks:
        found = _with_preserved(found, "<think>", "</think>")
    if "Write your thoughts between <think></think> and write your response between <response></response>" in source:
        found = _with_preserved(found, "<think>", "</think>", "<response>", "</response>")
        found = replace(found, content=ContentMarks())  # wrapped only behind a thought: read as plain
    if "<|CHATBOT_TOKEN|>" in source and "<|END_OF_TURN_TOKEN|>" in source and not found.content.start:
        marks = ContentMarks("<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>")
        found = replace(_with_preserved(found, marks.start, marks.end), content=marks)
    found = _tool_corrections(source, replace(found, reasoning=reasoning))
    if "laguna_glm_thinking" in source:
        tools = replace(
            found.tools,
            value_prefix=trim(found.tools.value_prefix),
            value_suffix=trim(found.tools.value_suffix),
            separator=trim(found.tools.separator),
            space_between=True,
        )
        found = replace(found, tools=tools, stops=("</assistant>",))
    if "Bailing V3 chat template" in source:
        tools = replace(found.tools, value_suffix=trim(found.tools.value_suffix), space_between=True)
        found = replace(found, tools=tools)
    return found


def _tool_corrections(source: str, found: TemplateAnalysis) -> TemplateAnalysis:
    if (
        'set has_code_interpreter = tools | selectattr("type", "equalto", "code_interpreter") | list | length > 0'
        in source
    ):
        tools = replace(
            found.tools,
            name_prefix="",
            section_start="",
            section_end="",
            call_start="<function=",
            call_end="</function>",
            close="",
        )
        preserved: tuple[str, ...] = ("<|eot_id|>", "<|eom_id|>", "<function=", ">", "</function>")
        found = replace(found, content=ContentMarks(found.content.start), tools=tools, preserved=preserved)
    distill = "{{'<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>'"
    if distill in source:
        tools = replace(
            found.tools,
            section_start="<｜tool▁calls▁begin｜>",
            section_end="<｜tool▁calls▁end｜>",
            call_start="<｜tool▁call▁begin｜>function",
            name_prefix="<｜tool▁sep｜>",
            call_end="<｜tool▁call▁end｜>",
            close="```",
        )
        found = replace(found, tools=tools)
    if all(text in source for text in ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>")):
        tools = replace(
            found.tools,
            kind="json",
            section_start="",
            section_end="",
            call_start="<TOOLCALL>",
            call_end="</TOOLCALL>",
            array=True,
        )
        preserved = ("<SPECIAL_11>", "</think>", "<TOOLCALL>", "</TOOLCALL>")
        found = replace(found, content=ContentMarks(), tools=tools, preserved=preserved)
    if 'Respond in the format {"name": function name' in source and "Do not use variables." in source:
        found = replace(found, openai_wrapper=True)
    return found


def _with_preserved(found: TemplateAnalysis, *marks: str) -> TemplateAnalysis:
    return replace(found, preserved=(*found.preserved, *marks))
