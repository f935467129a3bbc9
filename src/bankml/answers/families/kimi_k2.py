"""Kimi K2: a call's id is functions.<name>:<number>, and has the name in it."""

from bankml.answers.families.base import FamilyMarks, arguments_schema, finished, prompt_of, words
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, CALL_ARGUMENTS, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
PREFIX = "<|im_assistant|>assistant<|im_middle|>"
MARKS = FamilyMarks(
    triggers=words(CALL),
    preserved=(SECTION, SECTION_END, CALL, CALL_ARGUMENTS, CALL_END, "<think>", "</think>"),
    thinking_start="<think>",
    thinking_ends=("</think>",),
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    return finished(
        request,
        p,
        _answer(p, request),
        prompt_of(request),
        MARKS,
        continuation=request.continuation(PREFIX, "<think>", "</think>"),
        constrained=request.calls_tools,
        lazy=request.conversation.tool_choice == "auto",
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    end = p.let(p.end())
    reasoning = p.empty()
    if request.extracts_reasoning:
        thought = p.reasoning(p.until("</think>", SECTION, CALL))
        reasoning = p.optional("<think>" + thought + p.optional(p.literal("</think>")))
    p.let(reasoning)
    prefix = p.let(p.literal(PREFIX))
    if not request.calls_tools:
        return prefix + reasoning + p.content(p.rest()) + end
    choice = p.let(p.choice())
    for function in request.functions:
        name = p.tool_name(p.literal(function.name))
        call_id = p.let(p.tool_id(p.literal("functions.") + name + p.literal(":") + p.characters("[0-9]")))
        opened = p.tool_open(call_id + p.literal(CALL_ARGUMENTS))
        closed = p.tool_close(p.optional(p.literal(CALL_END)))
        called = p.let(p.tool(opened + arguments_schema(p, function) + closed))
        choice = p.let(choice | p.rule(f"tool-{function.name}", called))
    some = p.repeat(CALL + choice, int(request.requires_call), request.most_calls)
    inner = p.trigger_rule("tool-call", some + p.optional(p.literal(SECTION_END)))
    calls = p.let(p.rule("tool-calls", p.optional(p.literal(SECTION)) + inner))
    content = p.let(p.content(p.until(SECTION, CALL)))
    return prefix + reasoning + content + calls + end
