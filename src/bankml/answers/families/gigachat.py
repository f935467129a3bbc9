"""GigaChat 3: one call, a JSON object behind a role of its own."""

from bankml.answers.families.base import FamilyMarks, arguments_schema, finished, prompt_of, words
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_member
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder

PREFIX = "assistant<|role_sep|>\n"
CALL = "<|message_sep|>\n\nfunction call<|role_sep|>\n"
MARKS = FamilyMarks(triggers=words(CALL), preserved=("<|message_sep|>\n\n", "<|role_sep|>\n"), thinks=False)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    return finished(
        request,
        p,
        _answer(p, request),
        prompt_of(request),
        MARKS,
        continuation=request.continuation_of_content(PREFIX),
        constrained=request.calls_tools,
        lazy=request.conversation.tool_choice == "auto",
    )


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    p.let(p.empty())
    if not request.calls_tools:
        answer = p.let(p.content(p.rest()))
        return p.literal(PREFIX) + answer
    choice = p.let(p.choice())
    for function in request.functions:
        name = p.let(json_member(p, "name", '"' + p.tool_name(p.literal(function.name)) + '"'))
        arguments = p.let(json_member(p, "arguments", arguments_schema(p, function)))
        opened = p.let(p.tool_open(p.literal("{") << name))
        choice = p.let(choice | p.rule(f"tool-{function.name}", opened << "," << arguments << "}"))
    call = p.let(p.rule("tool-call", p.literal(CALL) + choice))
    calls = p.let(p.trigger_rule("tool-call-root", p.repeat(call, int(request.requires_call), 1)))
    answer = p.let(p.content(p.until("<|message_sep|>\n\n")) << calls)
    return p.literal(PREFIX) + answer
