"""DeepSeek V3.2 and V4: calls in DSML, tags with a token in their names."""

from collections.abc import Sequence

from bankml.answers.families.base import (
    FamilyMarks,
    answer_schema,
    constrained_by_any,
    finished,
    prompt_of,
    words,
)
from bankml.answers.format import AnswerFormat
from bankml.answers.native import optional_behind
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.schema_types import may_be_string
from bankml.answers.tags import AnswerBuilder
from bankml.text.messages import Message

DSML = "｜DSML｜"
THINK, THINK_END = "<think>", "</think>"
PREFIX = "<｜Assistant｜>"
INVOKE, INVOKE_END = f"<{DSML}invoke", f"</{DSML}invoke>"
PARAMETER, PARAMETER_END = f"<{DSML}parameter", f"</{DSML}parameter>"
SEPARATOR = "\n\n"


def describe(request: FormatRequest) -> AnswerFormat:
    is_v4 = "function_calls" not in request.source
    block = "tool_calls" if is_v4 else "function_calls"
    start, end = f"<{DSML}{block}>", f"</{DSML}{block}>"
    messages = results_in_order(request.messages) if is_v4 else None
    extra = {"response_format": request.schema} if is_v4 and request.has_schema else None
    p = AnswerBuilder()
    marks = FamilyMarks(
        triggers=words(start),
        preserved=(DSML, THINK, THINK_END),
        thinking_start=THINK,
        thinking_ends=(THINK_END, start),
    )
    continued = request.continued
    if is_v4 and continued is not None and not continued.get("reasoning_content"):
        continuation = request.continuation(PREFIX + THINK_END, "")
    else:
        continuation = request.continuation(PREFIX, THINK, THINK_END)
    return finished(
        request,
        p,
        _answer(p, request, start, end, is_v4),
        prompt_of(request, messages, extra),
        marks,
        continuation=continuation,
        constrained=constrained_by_any(request),
        lazy=request.has_tools and not request.requires_call,
    )


def results_in_order(messages: Sequence[Message]) -> list[Message]:
    """V4 has the results of several calls in one block, in the order of the calls."""
    out = list(messages)
    order: dict[str, int] = {}
    at = 0
    while at < len(out):
        message = out[at]
        if message["role"] == "assistant" and message.get("tool_calls"):
            order = {call["id"]: i for i, call in enumerate(message["tool_calls"]) if call.get("id")}
        if message["role"] not in ("user", "tool"):
            at += 1
            continue
        end = at
        while end < len(out) and out[end]["role"] in ("user", "tool"):
            end += 1
        places = [i for i in range(at, end) if out[i]["role"] == "tool"]
        if len(places) > 1 and order:
            results = sorted((out[i] for i in places), key=lambda one: order.get(one.get("tool_call_id", ""), 0))
            for place, result in zip(places, results, strict=True):
                out[place] = result
        at = end
    return out


def _answer(p: AnswerBuilder, request: FormatRequest, start: str, end: str, is_v4: bool) -> Part:
    prefix, whole = p.let(p.literal(PREFIX)), p.let(p.end())
    choice = p.let(p.choice())
    if request.calls_tools:
        for function in request.functions:
            choice = p.let(choice | p.rule(f"tool-{function.name}", _function(p, function)))
    p.let(p.empty())
    others = p.repeat(p.space() + choice, 0)
    if request.parallel:
        inside = p.literal(start) + p.space() + choice + others + p.space() + p.literal(end)
    else:
        inside = p.literal(start) + p.space() + choice + p.space() + p.literal(end)
    required = p.let(p.trigger_rule("tool-call", inside))
    reasoning = p.let(p.empty())
    p.let(p.empty())
    before_calls: Part | None = None
    calls = required if request.requires_call else p.let(p.optional(required))
    if request.extracts_reasoning and request.conversation.enable_thinking:
        reasoning = p.let(p.optional(THINK + p.reasoning(p.until(THINK_END)) + THINK_END))
        thought = p.reasoning(p.until(SEPARATOR + start, start, THINK_END))
        before_calls = p.let(THINK + thought + p.space() + required)
    elif request.extracts_reasoning and is_v4:
        reasoning = p.let(p.optional(p.literal(THINK_END)))
    elif request.extracts_reasoning:
        reasoning = p.let(p.optional(p.literal(THINK) + p.until(THINK_END) + p.literal(THINK_END)))
    if request.has_schema:
        value = p.literal("```json") + p.space() + answer_schema(p, request) + p.space() + p.literal("```")
        return prefix + reasoning + p.let(p.rule("response-format", value)) + whole
    if not request.calls_tools:
        return prefix + reasoning + p.content(p.rest()) + whole
    content = p.let(p.not_ahead(p.literal(THINK)) + p.content(p.until(SEPARATOR + start, start)) + p.space())
    if before_calls is not None:
        return prefix + (before_calls | (reasoning + content + calls)) + whole
    return prefix + reasoning + content + calls + whole


def _function(p: AnswerBuilder, function: ToolFunction) -> Part:
    required: list[Part] = []
    optional: list[Part] = []
    for one in function.properties:
        rule = f"tool-{function.name}-arg-{one.name}"
        document = function.of(one)
        string = may_be_string(one.schema, document)
        kind = p.literal(f'" string="{"true" if string else "false"}">')
        opened = p.argument_open(p.literal(PARAMETER + ' name="') + p.argument_name(p.literal(one.name)) + kind)
        if string:
            value = p.string_value(p.until(PARAMETER_END))
        else:
            value = p.value(p.schema(json_value(p), f"{rule}-schema", document))
        argument = p.let(p.argument(opened + value + p.argument_close(p.literal(PARAMETER_END))))
        (required if one.required else optional).append(p.let(p.rule(rule, argument)))
    arguments = optional_behind(p, required, optional, p.space)
    opened = p.tool_open(p.literal(INVOKE + ' name="') + p.tool_name(p.literal(function.name)) + p.literal('">\n'))
    return p.let(p.tool(opened + arguments + p.space() + p.tool_close(p.literal(INVOKE_END))))
