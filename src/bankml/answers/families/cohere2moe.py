"""Cohere2 MoE (North OpCode): thought, then content or calls, each between marks of its own."""

from bankml.answers.families.base import (
    FamilyMarks,
    answer_schema,
    constrained_by_any,
    finished,
    prompt_of,
    words,
)
from bankml.answers.format import AnswerFormat
from bankml.answers.json_calls import json_calls
from bankml.answers.peg.builder import Part
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder
from bankml.answers.tool_format import JsonKeys, ToolFormat

TURN, TURN_END, CHATBOT = "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>"
THINK, THINK_END = "<|START_THINKING|>", "<|END_THINKING|>"
TEXT, TEXT_END = "<|START_TEXT|>", "<|END_TEXT|>"
ACTION, ACTION_END = "<|START_ACTION|>", "<|END_ACTION|>"
PREFIX = TURN + CHATBOT
CALLS = ToolFormat(
    "json",
    array=True,
    keys=JsonKeys(made_id="tool_call_id", order=("tool_call_id", "tool_name", "parameters")),
)
MARKS = FamilyMarks(
    triggers=words(ACTION),
    preserved=(
        *(TURN, TURN_END, CHATBOT, "<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>", THINK, THINK_END, TEXT, TEXT_END),
        *(ACTION, ACTION_END, "<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
    ),
    thinking_start=THINK,
    thinking_ends=(THINK_END,),
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    return finished(
        request,
        p,
        _answer(p, request),
        prompt_of(request),
        MARKS,
        continuation=request.continuation(PREFIX, THINK, THINK_END + TEXT),
        constrained=constrained_by_any(request),
        lazy=not request.has_schema and request.conversation.tool_choice == "auto",
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    prefix, end = p.let(p.literal(PREFIX)), p.let(p.end())
    p.let(p.empty())
    inside = p.until(THINK_END, TEXT, ACTION)
    closing = p.optional(p.literal(THINK_END))
    if request.extracts_reasoning:
        reasoning = p.let(p.optional(p.literal(THINK) + p.reasoning(inside) + closing))
    else:
        reasoning = p.let(p.optional(p.content(p.literal(THINK) + inside + closing)))
    content = answer_schema(p, request) if request.has_schema else p.content(p.until(TEXT_END))
    text = p.let(p.literal(TEXT) + content + p.optional(p.literal(TEXT_END)))
    if not request.calls_tools:
        return prefix + reasoning + text + p.optional(p.literal(TURN_END)) + end
    calls = p.let(json_calls(p, request, ACTION, ACTION_END, "tool_name", "parameters", CALLS, forced=True))
    body = calls if request.requires_call else p.let(p.choice(calls, text))
    return prefix + reasoning + body + p.optional(p.literal(TURN_END)) + end
