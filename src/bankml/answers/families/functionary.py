"""Functionary v3.2: content and calls are messages to recipients, `>>>all` or `>>>name`."""

from bankml.answers.families.base import FamilyMarks, arguments_schema, finished, prompt_of
from bankml.answers.format import AnswerFormat, Trigger
from bankml.answers.peg.builder import Part
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder

PREFIX = "<|start_header_id|>assistant<|end_header_id|>\n\n>>>"
MARKS = FamilyMarks(triggers=(Trigger("pattern", ">>>(?!all)"),), preserved=(">>>all",), thinks=False)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    return finished(
        request,
        p,
        _answer(p, request),
        prompt_of(request),
        MARKS,
        continuation=request.continuation_of_content(PREFIX + "all\n"),
        constrained=request.calls_tools,
        lazy=request.conversation.tool_choice == "auto",
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    before_tool = p.let(p.literal("all\n") + p.content(p.until(">>>")))
    to_end = p.let(p.literal("all\n") + p.content(p.rest()))
    prefix = p.let(p.literal(PREFIX))
    if not request.calls_tools:
        return prefix + to_end + p.end()
    choice = p.let(p.choice())
    for function in request.functions:
        opened = p.tool_open(p.tool_name(p.literal(function.name)) + p.literal("\n"))
        called = p.let(p.tool(opened + arguments_schema(p, function)))
        choice = p.let(choice | p.rule(f"tool-{function.name}", called))
    only_tools = p.let(p.trigger_rule("tools", p.repeat(choice, 1)))
    both = p.let(before_tool + only_tools)
    p.let(p.empty())
    if request.requires_call:
        first = both if request.parallel else before_tool + choice
        return prefix + p.let(p.choice(first, only_tools) + p.end())
    if request.parallel:
        return prefix + p.let(p.choice(both, to_end, only_tools) + p.end())
    one = p.let(before_tool + choice)
    return prefix + p.let(p.choice(one, to_end, choice) + p.end())
