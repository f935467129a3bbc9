"""Qwen3-Coder, Qwen3.5, Nemotron 3 Nano and StepFun 3.5: calls in XML, each argument a tag of its own."""

from collections.abc import Callable

from bankml.answers.families.base import (
    FamilyMarks,
    answer_schema,
    constrained_by_any,
    finished,
    permuted,
    prompt_of,
    words,
)
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_array, json_bool, json_null, json_number, json_object, json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.schema_types import value_types
from bankml.answers.tags import AnswerBuilder

PREFIX = "<|im_start|>assistant\n"
CLOSE = "\n</parameter>\n"

ValueOf = Callable[[AnswerBuilder], Part]
BY_TYPE: tuple[tuple[frozenset[str], ValueOf], ...] = (
    (frozenset({"object"}), json_object),
    (frozenset({"array"}), json_array),
    (frozenset({"number", "integer"}), json_number),
    (frozenset({"boolean"}), json_bool),
    (frozenset({"null"}), json_null),
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    thinks = "<think>" in request.source
    starts = ["<tool_call>"]
    if not thinks:
        # Qwen3-Coder leaves <tool_call> out at times; the whole opening tag is less likely in content than its start.
        starts += [f"<function={tool['function']['name']}>" for tool in request.conversation.tools]
    preserved = ("<tool_call>", "</tool_call>") + (("<think>", "</think>") if thinks else ())
    marks = FamilyMarks(
        triggers=words(*starts),
        preserved=preserved,
        thinks=thinks,
        thinking_start="<think>" if thinks else "",
        thinking_ends=("\n</think>", "</think>", "<tool_call>") if thinks else (),
    )
    between = "\n</think>\n\n" if thinks else ""
    return finished(
        request,
        p,
        _answer(p, request, starts, thinks),
        prompt_of(request),
        marks,
        continuation=request.continuation(PREFIX, "<think>\n" if thinks else "", between),
        constrained=constrained_by_any(request),
        lazy=request.has_tools and request.conversation.tool_choice == "auto",
    )


def _answer(p: AnswerBuilder, request: FormatRequest, starts: list[str], thinks: bool) -> Part:
    prefix = p.let(p.literal(PREFIX))
    reasoning = p.let(p.empty())
    if thinks and request.extracts_reasoning:
        thought = p.reasoning(p.until("</think>", "<tool_call>"))
        end = p.literal("</think>") | p.ahead(p.literal("<tool_call>"))
        reasoning = p.let(p.optional("<think>" + p.space() + thought + end))
    if request.has_schema:
        return prefix + (reasoning << answer_schema(p, request, "response-format"))
    if not request.calls_tools:
        return prefix + (reasoning << p.content(p.rest()))
    close = p.let(p.argument_close(p.literal(CLOSE)))
    text = p.including(p.string_value(p.until(CLOSE)) + close, CLOSE)
    string = p.let(p.rule("xml-arg-string", text))
    choice = p.let(p.choice())
    for function in request.functions:
        called = p.let(_function(p, function, close, string))
        choice = p.let(choice | p.rule(f"tool-{function.name}", called))
    body = p.let(choice + "</tool_call>" + p.space())
    call = p.let(p.rule("tool-call", "<tool_call>\n" + body))
    first = call
    if not thinks:
        first = p.let(p.rule("tool-call-first", p.optional(p.literal("<tool_call>\n")) + body))
    calls = p.let(first + p.repeat(call, 0)) if request.parallel else first
    calls = p.let(p.trigger_rule("tool-call-root", p.repeat(calls, int(request.requires_call), 1)))
    return prefix + (reasoning << p.content(p.until(*starts)) << calls)


def _function(p: AnswerBuilder, function: ToolFunction, close: Part, string: Part) -> Part:
    required: list[Part] = []
    optional: list[Part] = []
    for one in function.properties:
        rule = f"tool-{function.name}-arg-{one.name}"
        opened = p.let(p.argument_open("<parameter=" + p.argument_name(p.literal(one.name)) + ">\n"))
        document = function.of(one)
        types = value_types(one.schema, document)
        value = p.let(p.empty())
        if "string" not in types:
            value = p.let(p.value(p.schema(json_value(p), f"{rule}-schema", document)) + close)
        elif types == {"string"}:
            value = string
        else:
            # Any text is allowed, so the grammar has the string's rule alone; JSON is tried first, for the type.
            choice = p.let(p.choice())
            for kinds, made in BY_TYPE:
                if kinds & types:
                    choice = p.let(choice | made(p))
            value = p.let(p.gbnf(p.atomic(p.value(choice) + close) | string, "xml-arg-string"))
        argument = p.let(p.rule(rule, p.argument(opened + value)))
        (required if one.required else optional).append(argument)
    arguments = p.let(permuted(p, f"tool-{function.name}-args", required))
    if optional:
        arguments = p.let(arguments + p.repeat(p.choice(*optional), 0))
    opened = p.tool_open("<function=" + p.tool_name(p.literal(function.name)) + ">\n")
    return p.tool(opened + p.tool_arguments(arguments) + p.tool_close(p.literal("</function>\n")))
