"""Muse Glimmer: an answer is messages to recipients, calls are ATEM markup in messages to tools."""

from bankml.answers.families.base import FamilyMarks, FamilyPrompt, finished
from bankml.answers.format import AnswerFormat, Trigger
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.schema_types import may_be_string
from bankml.answers.tags import AnswerBuilder

START = "<|start|>assistant"
THOUGHT = " to=self<|message|>"
CLOSE = "</atem:parameter>"
MARKS = FamilyMarks(
    triggers=(
        Trigger(
            "pattern",
            r"(?:^|<\|start\|>assistant)( to=(?!self<\|message\|>)(?!user<\|message\|>)[^<]*?<\|message\|>)",
        ),
    ),
    preserved=(
        *("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        *("<atem:function_calls>", "<atem:invoke", "<atem:parameter"),
        *("</atem:parameter>", "</atem:invoke>", "</atem:function_calls>"),
    ),
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    return finished(
        request,
        p,
        _answer(p, request),
        FamilyPrompt(request.prompt(), START),
        MARKS,
        continuation=request.continuation(START, THOUGHT, f"<|eom|>{START} to=user<|message|>"),
        constrained=request.calls_tools,
        lazy=not request.requires_call,
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    start = p.let(p.rule("start", p.literal(START)))
    if not request.extracts_reasoning and not request.calls_tools:
        return start + p.content(p.rest())
    inside = p.until("<|eom|>")
    thought = p.reasoning(inside) if request.extracts_reasoning else p.content(inside)
    p.let(p.rule("analysis", p.literal(THOUGHT) + thought + p.literal("<|eom|>")))
    analysis = p.let(p.ref("analysis"))
    recipient = p.let(p.optional(p.literal(" to=user")))
    content = p.content(p.until("<|eot|>", "<|eom|>"))
    final = p.let(p.rule("final", recipient + p.literal("<|message|>") + content))
    if not request.calls_tools:
        return p.repeat(start + analysis, 0) + start + final
    text = p.string_value(p.until(CLOSE)) + p.argument_close(p.literal(CLOSE))
    string = p.let(p.including(text, CLOSE))
    choice = p.let(p.choice())
    for function in request.functions:
        choice = p.let(choice | p.rule(f"tool-{function.name}", _function(p, function, string)))
    if request.parallel:
        others = p.repeat(p.literal("<|eom|>") + start + choice, 0)
        calls = p.let(p.trigger_rule("tool-call", choice + others))
    else:
        calls = p.let(p.trigger_rule("tool-call", choice))
    if request.requires_call:
        return p.repeat(start + analysis, 0) + start + calls
    trailing = p.let(p.optional(p.literal("<|eom|>") + start + calls))
    return p.repeat(start + analysis, 0) + start + (calls | (final + trailing))


def _function(p: AnswerBuilder, function: ToolFunction, string: Part) -> Part:
    made: list[Part] = []
    for one in function.properties:
        document = function.of(one)
        p.let(p.empty())
        if may_be_string(one.schema, document):
            value = string
        else:
            name = f"tool-{function.name}-arg-{one.name}-schema"
            value = p.let(p.value(p.schema(json_value(p), name, document)) + p.argument_close(p.literal(CLOSE)))
        opened = p.literal('<atem:parameter name="') + p.argument_name(p.literal(one.name)) + p.literal('">')
        made.append(p.let(p.argument(p.argument_open(opened) + value)))
    arguments = p.let(p.empty())
    if made:
        arguments = p.let(p.repeat(p.choice(*made) + p.space(), 0))
    opened = p.tool_open(
        p.literal(" to=")
        + p.until("<|message|>")
        + p.literal("<|message|><atem:function_calls>")
        + p.space()
        + p.literal('<atem:invoke name="')
        + p.tool_name(p.literal(function.name))
        + p.literal('">')
        + p.space()
    )
    closed = p.tool_close(p.literal("</atem:invoke>") + p.space() + p.literal("</atem:function_calls>"))
    return p.let(p.tool(opened << p.tool_arguments(arguments) << closed))
