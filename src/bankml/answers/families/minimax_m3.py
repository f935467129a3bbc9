"""MiniMax M3: calls in XML, values within values too; every tag behind a token that names the space."""

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
from bankml.answers.native import optional_behind
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.schema_types import may_be_string
from bankml.answers.tags import ARRAY, ITEM, OBJECT, AnswerBuilder
from bankml.grammar.json_schema.nodes import AnyOf, Array, Node, Object, SchemaDocument

SPACE = "]<]minimax[>["
THINK, THINK_END = "<mm:think>", "</mm:think>"
CALLS, CALLS_END, INVOKE_END = f"{SPACE}<tool_call>", f"{SPACE}</tool_call>", f"{SPACE}</invoke>"
MARKS = FamilyMarks(
    triggers=words(CALLS),
    preserved=(SPACE, "<tool_call>", "</tool_call>", THINK, THINK_END),
    thinking_start=THINK,
    thinking_ends=(THINK_END,),
    mapping="minimax",
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    prompt = prompt_of(request)
    return finished(
        request,
        p,
        _answer(p, request, prompt.generation),
        prompt,
        MARKS,
        continuation=request.continuation(prompt.generation, THINK, THINK_END),
        constrained=constrained_by_any(request),
        lazy=lazy_without_need(request),
    )


def _answer(p: AnswerBuilder, request: FormatRequest, generation_prompt: str) -> Part:
    prefix, end = p.let(p.up_to(generation_prompt, THINK)), p.let(p.end())
    reasoning = p.let(p.empty())
    if request.extracts_reasoning:
        inside, closing = p.until(THINK_END), p.literal(THINK_END)
        if request.conversation.enable_thinking:
            block = p.literal(THINK) + p.space() + p.including(p.reasoning(inside) + closing, THINK_END)
        else:
            block = p.literal(THINK) + p.including(inside + closing, THINK_END)
        p.let(block)
        reasoning = p.let(p.optional(p.choice(block, p.literal(THINK_END))))
    if request.has_schema:
        value = p.literal("```json") + p.space() + answer_schema(p, request) + p.space() + p.literal("```")
        return prefix + reasoning + p.let(p.rule("response-format", value)) + end
    if not request.calls_tools:
        return prefix + reasoning + p.content(p.rest()) + end
    choice = p.let(p.choice())
    for function in request.functions:
        choice = p.let(choice | p.rule(f"tool-{function.name}", _function(p, function)))
    p.let(p.empty())
    if request.parallel:
        others = p.repeat(p.space() + choice, 0)
        inside = p.literal(CALLS) + p.space() + choice + others + p.space() + p.literal(CALLS_END)
    else:
        inside = p.literal(CALLS) + p.space() + choice + p.space() + p.literal(CALLS_END)
    calls = p.let(p.trigger_rule("tool-call", inside))
    if not request.requires_call:
        calls = p.let(p.optional(calls))
    content = p.let(p.content(p.until(CALLS)))
    return prefix + reasoning + content + calls + end


def _function(p: AnswerBuilder, function: ToolFunction) -> Part:
    body = p.let(p.empty())
    root = function.document.root
    if isinstance(root, Object):
        body = _members(p, root, function.document, f"tool-{function.name}-arg")
    name = p.tool_name(p.literal(function.name))
    opened = p.tool_open(p.literal(f'{SPACE}<invoke name="') + name + p.literal('">'))
    return p.let(p.tool(opened + p.space() + body + p.space() + p.tool_close(p.literal(INVOKE_END))))


def _members(p: AnswerBuilder, node: Object, document: SchemaDocument, rule: str) -> Part:
    required: list[Part] = []
    optional: list[Part] = []
    for one in node.properties:
        element = _element(p, one.name, one.schema, document, f"{rule}-{one.name}")
        (required if one.required else optional).append(element)
    return optional_behind(p, required, optional, p.space)


def _element(p: AnswerBuilder, tag: str, node: Node, document: SchemaDocument, rule: str) -> Part:
    def make() -> Part:
        value = p.deferred(lambda: _value(p, node, document, rule, f"{SPACE}</{tag}>"))
        name = p.argument_name(p.literal(tag))
        return p.argument(p.argument_open(p.literal(f"{SPACE}<") + name + p.literal(">")) + value)

    return p.let(p.rule(rule, p.deferred(make)))


def _value(p: AnswerBuilder, node: Node, document: SchemaDocument, rule: str, close: str) -> Part:
    closing = p.let(p.argument_close(p.literal(close)))
    if may_be_string(node, document):
        return p.including(p.string_value(p.until(close)) + closing, close)
    if isinstance(node, AnyOf):
        made = [p.let(_value(p, one, document, f"{rule}-{i}", close)) for i, one in enumerate(node.children)]
        return p.choice(*made)
    if isinstance(node, Object) and node.properties:
        members = p.deferred(lambda: _members(p, node, document, rule))
        return p.tag(OBJECT, members) + p.space() + closing
    if isinstance(node, Array):
        inner = p.deferred(lambda: _value(p, node.items, document, f"{rule}-item", f"{SPACE}</item>"))
        item = p.let(p.rule(f"{rule}-item", p.tag(ITEM, p.literal(f"{SPACE}<item>") + inner)))
        return p.tag(ARRAY, p.repeat(p.space() + item, 0)) + p.space() + closing
    schema = p.schema(json_value(p), f"{rule}-schema", SchemaDocument(node, document.targets))
    return p.value(schema) + closing
