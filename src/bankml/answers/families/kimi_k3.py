"""Kimi K3: sections between <|open|>name<|sep|> and <|close|>name<|sep|>, arguments in tags."""

from bankml.answers.families.base import FamilyMarks, finished, prompt_of, words
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.tags import AnswerBuilder

SEPARATOR = "<|sep|>"
START = '<|open|>message role="assistant"<|sep|>'
THINK, THINK_END = "<|open|>think<|sep|>", "<|close|>think<|sep|>"
RESPONSE, RESPONSE_END = "<|open|>response<|sep|>", "<|close|>response<|sep|>"
TOOLS, TOOLS_END = "<|open|>tools<|sep|>", "<|close|>tools<|sep|>"
CALL, CALL_END = '<|open|>call tool="', "<|close|>call<|sep|>"
ARGUMENT, ARGUMENT_END = '<|open|>argument key="', "<|close|>argument<|sep|>"
MESSAGE_END, LAST = "<|close|>message<|sep|>", "<|end_of_msg|>"
MARKS = FamilyMarks(
    triggers=words(TOOLS),
    preserved=("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"),
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
        continuation=request.continuation(START, THINK, THINK_END + RESPONSE),
        constrained=request.calls_tools,
        lazy=not request.requires_call,
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    end = p.let(p.end())
    start = p.let(p.optional(p.literal(START)))
    inside = p.until(THINK_END, RESPONSE)
    thought = p.let(p.reasoning(inside) if request.extracts_reasoning else p.content(inside))
    reasoning = p.optional(p.literal(THINK)) + thought + p.optional(p.literal(THINK_END))
    reasoning = p.let(p.optional(reasoning))
    content = p.content(p.until(RESPONSE_END, TOOLS, MESSAGE_END))
    response = p.let(p.optional(p.literal(RESPONSE)) + content + p.optional(p.literal(RESPONSE_END)))
    trailer = p.let(p.optional(p.literal(MESSAGE_END)) + p.optional(p.literal(LAST)))
    if not request.calls_tools:
        return start + reasoning + response + trailer + end
    choice = p.let(p.choice())
    for function in request.functions:
        choice = p.let(choice | p.rule(f"kimi-k3-tool-{function.name}", _function(p, function)))
    section = p.literal(TOOLS) + p.repeat(choice, 1) + p.literal(TOOLS_END)
    section = section + p.optional(p.literal(MESSAGE_END)) + p.optional(p.literal(LAST))
    tools = p.let(p.trigger_rule("kimi-k3-tool-call", section))
    if not request.requires_call:
        tools = p.let(p.optional(tools))
    return start + reasoning + response + tools + trailer + end


def _function(p: AnswerBuilder, function: ToolFunction) -> Part:
    arguments = p.let(p.empty())
    properties = function.parameters.get("properties") or {}
    if properties:
        choice = p.let(p.choice())
        for key, schema in properties.items():
            kind = schema.get("type") if isinstance(schema, dict) else None
            string = not isinstance(kind, str) or kind == "string"
            inside = p.until(ARGUMENT_END)
            value = p.let(p.string_value(inside) if string else p.value(inside))
            argument = p.argument(
                p.argument_open(p.literal(ARGUMENT))
                + p.argument_name(p.literal(key))
                + p.literal('"')
                + p.until(SEPARATOR)
                + p.literal(SEPARATOR)
                + value
                + p.argument_close(p.literal(ARGUMENT_END))
            )
            choice = p.let(choice | p.rule(f"kimi-k3-arg-{function.name}-{key}", argument))
        arguments = p.let(p.repeat(choice, 0))
    name = p.tool_name(p.literal(function.name))
    opened = p.literal(CALL) + name + p.literal('"') + p.until(SEPARATOR) + p.literal(SEPARATOR)
    return p.let(p.tool(p.tool_open(opened) + p.tool_arguments(arguments) + p.tool_close(p.literal(CALL_END))))
