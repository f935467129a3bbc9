"""LFM2 and LFM2.5: calls as Python writes them, in a list between two tokens."""

from bankml.answers.families.base import (
    FamilyMarks,
    answer_schema,
    constrained_by_any,
    finished,
    lazy_without_need,
    prompt_of,
    with_thinking,
    words,
)
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import python_or_json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.tags import AnswerBuilder

CALL, CALL_END = "<|tool_call_start|>", "<|tool_call_end|>"
LIST_MARKS = ("<|tool_list_start|>", "<|tool_list_end|>")
PREFIX = "<|im_start|>assistant\n"


def describe_lfm2(request: FormatRequest) -> AnswerFormat:
    return _describe(request, LIST_MARKS)


def describe_lfm2_5(request: FormatRequest) -> AnswerFormat:
    return _describe(request, ())


def _describe(request: FormatRequest, list_marks: tuple[str, ...]) -> AnswerFormat:
    p = AnswerBuilder()
    marks = FamilyMarks(
        triggers=words(CALL),
        preserved=(CALL, CALL_END, "<think>", "</think>", *list_marks),
        thinking_start="<think>",
        thinking_ends=("</think>",),
    )
    return finished(
        request,
        p,
        _answer(p, request),
        prompt_of(request, with_thinking(request.messages)),
        marks,
        continuation=request.continuation(PREFIX, "<think>", "</think>"),
        constrained=constrained_by_any(request),
        lazy=lazy_without_need(request),
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    prefix, end = p.let(p.literal(PREFIX)), p.let(p.end())
    reasoning = p.let(p.empty())
    if request.extracts_reasoning and "<think>" in request.source:
        reasoning = p.let(p.optional("<think>" + p.reasoning(p.until("</think>")) + "</think>"))
    if not request.calls_tools:
        if request.has_schema:
            value = p.let(answer_schema(p, request))
            return prefix + reasoning + value + end
        return prefix + reasoning + p.content(p.rest()) + end
    inner = p.deferred(lambda: p.literal(CALL) + _calls(p, request) + p.literal(CALL_END))
    calls = p.let(p.rule("tool-calls", p.trigger_rule("tool-call", inner)))
    content = p.let(p.content(p.until(CALL)))
    return prefix + reasoning + content + calls + end


def _calls(p: AnswerBuilder, request: FormatRequest) -> Part:
    def make() -> Part:
        choice = p.let(p.choice())
        for function in request.functions:
            arguments = _arguments(p, function)
            opened = p.tool_open(p.tool_name(p.literal(function.name)) + p.literal("("))
            called = p.let(
                p.tool(opened + p.space() + p.tool_arguments(arguments) + p.space() + p.tool_close(p.literal(")")))
            )
            choice = p.let(choice | p.rule(f"tool-{function.name}", called))
        if request.parallel:
            return "[" + p.space() + choice + p.repeat("," + p.space() + choice, 0) + p.space() + "]"
        return "[" + p.space() + choice + p.space() + "]"

    return p.deferred(make)


def _arguments(p: AnswerBuilder, function: ToolFunction) -> Part:
    arguments = p.let(p.empty())
    properties = function.parameters.get("properties") or {}
    if not properties:
        return arguments
    choice = p.let(p.choice())
    for key, schema in properties.items():
        name = p.let(p.literal(key))
        p.let(p.empty())
        double = p.literal('"') + p.string_content('"') + p.literal('"')
        single = p.literal("'") + p.string_content("'") + p.literal("'")
        string = p.let(p.value(p.choice(double, single)))
        is_string = isinstance(schema, dict) and schema.get("type") == "string"
        value = string if is_string else p.let(p.value(python_or_json_value(p)))
        opened = p.argument_open(p.argument_name(name) + p.literal("="))
        argument = p.let(p.argument(opened + value + p.argument_close(p.empty())))
        choice = p.let(choice | argument)
    return p.let(choice + p.repeat("," + p.space() + choice, 0))
