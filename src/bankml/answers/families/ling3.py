"""Ling 3 and Bailing V3: sections of roles, calls in tags, behind a thought that may not be closed."""

from bankml.answers.families.base import FamilyMarks, finished, permuted, prompt_of, words
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.schema_types import value_types
from bankml.answers.tags import AnswerBuilder

ROLE, ROLE_END = "<role>ASSISTANT</role>", "<|role_end|>"
THINK, THINK_END = "<think>", "</think>"
CALL, CALL_END = "<tool_call>", "</tool_call>"
KEY, KEY_END, VALUE, VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
MARKS = FamilyMarks(
    triggers=words(CALL),
    preserved=(THINK, THINK_END, CALL, CALL_END, KEY, KEY_END, VALUE, VALUE_END, ROLE_END),
    stops=(ROLE_END,),
    thinking_start=THINK,
    thinking_ends=(THINK_END, CALL),
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    prompt = prompt_of(request)
    if request.continued is not None:
        opened = request.conversation.continues != "content"
    else:
        opened = prompt.generation.rfind(THINK) > prompt.generation.rfind(THINK_END)
    return finished(
        request,
        p,
        _answer(p, request, opened),
        prompt,
        MARKS,
        continuation=request.continuation(ROLE + "\n", THINK, THINK_END),
        constrained=request.calls_tools,
        lazy=not request.requires_call,
    )


def _answer(p: AnswerBuilder, request: FormatRequest, opened: bool) -> Part:
    end = p.let(p.end())
    opener = p.let(p.optional(p.literal(ROLE) + p.optional(p.space())))
    inside = p.let(p.until(THINK_END, CALL) if opened else p.until(THINK_END))
    thought = p.let(p.reasoning(inside) if request.extracts_reasoning else p.content(inside))
    reasoning = p.optional(p.literal(THINK)) + thought + p.optional(p.literal(THINK_END))
    reasoning = p.let(p.optional(reasoning))
    content = p.let(p.optional(p.content(p.until(CALL))))
    tail = p.let(p.optional(p.content(p.until(ROLE_END))) + p.optional(p.literal(ROLE_END)))
    if not request.calls_tools:
        return opener + reasoning + tail + end
    choice = p.let(p.choice())
    close = p.let(p.argument_close(p.literal(VALUE_END)))
    string = p.let(p.rule("ling3-arg-string", p.string_value(p.until(VALUE_END)) + close))
    for function in request.functions:
        choice = p.let(choice | p.rule(f"ling3-tool-{function.name}", _function(p, function, close, string)))
    calls = p.let(choice + p.repeat(p.space() + choice, 0)) if request.parallel else choice
    rest = p.optional(p.content(p.until(ROLE_END)))
    section = calls + p.space() + rest + p.optional(p.literal(ROLE_END))
    tools = p.let(p.trigger_rule("ling3-tool-call", section))
    if not request.requires_call:
        tools = p.let(p.optional(tools))
    return opener + reasoning + content + tools + tail + end


def _function(p: AnswerBuilder, function: ToolFunction, close: Part, string: Part) -> Part:
    required: list[Part] = []
    optional: list[Part] = []
    for one in function.properties:
        rule = f"ling3-arg-{function.name}-{one.name}"
        document = function.of(one)
        types = value_types(one.schema, document)
        value = p.let(p.empty())
        if types == {"string"}:
            value = string
        else:
            json = p.value(p.schema(json_value(p), f"{rule}-schema", document)) + close
            value = p.let(p.gbnf(p.atomic(json) | string, "ling3-arg-string") if "string" in types else json)
        name = p.argument_open(p.literal(KEY) + p.argument_name(p.literal(one.name)) + p.literal(KEY_END))
        argument = p.argument(name + p.optional(p.space()) + p.literal(VALUE) + value)
        made = p.let(p.rule(rule, p.optional(p.space()) + argument))
        (required if one.required else optional).append(made)
    arguments = p.let(permuted(p, f"ling3-{function.name}-args", required))
    if optional:
        arguments = p.let(arguments + p.repeat(p.choice(*optional), 0))
    opened = p.tool_open(p.literal(CALL) + p.tool_name(p.literal(function.name)) + p.optional(p.space()))
    closed = p.tool_close(p.optional(p.space()) + p.literal(CALL_END))
    return p.let(p.tool(opened + p.tool_arguments(arguments) + closed))
