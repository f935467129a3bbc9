"""MiniCPM5: calls in XML, <function name="…"><param name="…">; a value may be in CDATA."""

from bankml.answers.families.base import (
    FamilyMarks,
    answer_schema,
    constrained_by_any,
    finished,
    lazy_without_need,
    prompt_of,
    words,
)
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.schema_types import may_be_string
from bankml.answers.tags import AnswerBuilder

PREFIX = "<|im_start|>assistant\n"
CDATA, CDATA_END, CLOSE = "<![CDATA[", "]]>", "</param>"
MARKS = FamilyMarks(
    triggers=words("<function"),
    preserved=("<function", "<param", "</function>", "</param>", "<think>", "</think>"),
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
        continuation=request.continuation(PREFIX, "<think>\n", "\n</think>\n\n"),
        constrained=constrained_by_any(request),
        lazy=lazy_without_need(request),
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    prefix = p.let(p.literal(PREFIX))
    reasoning = p.let(p.empty())
    if request.extracts_reasoning:
        thought = p.deferred(lambda: "<think>" << p.reasoning(p.until("</think>")) << "</think>")
        reasoning = p.let(thought + p.space())
    if request.has_schema:
        return prefix + reasoning + answer_schema(p, request, "response-format")
    if not request.calls_tools:
        return prefix + reasoning + p.content(p.rest()) + p.end()
    string = p.let(_string(p))
    choice = p.let(p.choice())
    for function in request.functions:
        choice = p.let(choice | p.rule(f"tool-{function.name}", _function(p, function, string)))
    calls = p.let(p.trigger_rule("tool-call", p.repeat(choice + p.space(), 1, request.most_calls)))
    content = p.let(p.content(p.until("<function")))
    return prefix + reasoning + content + calls + p.end()


def _string(p: AnswerBuilder) -> Part:
    inside = p.including(p.string_value(p.until(CDATA_END)) + p.literal(CDATA_END), CDATA_END)
    in_cdata = p.literal(CDATA) + inside + p.argument_close(p.literal(CLOSE))
    plain = p.including(p.string_value(p.until(CLOSE)) + p.argument_close(p.literal(CLOSE)), CLOSE)
    return p.choice(in_cdata, p.not_ahead(p.literal(CDATA)) + plain)


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
        opened = p.literal('<param name="') + p.argument_name(p.literal(one.name)) + p.literal('">')
        made.append(p.let(p.argument(p.argument_open(opened) + value)))
    arguments = p.let(p.empty())
    if made:
        arguments = p.let(p.repeat(p.choice(*made) + p.space(), 0))
    opened = p.tool_open(p.literal('<function name="') + p.tool_name(p.literal(function.name)) + p.literal('">'))
    closed = p.tool_close(p.literal("</function>"))
    return p.let(p.tool(opened << p.tool_arguments(arguments) << closed))
