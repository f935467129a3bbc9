"""gpt-oss: an answer is messages in channels, calls are messages to functions."""

from bankml.answers.families.base import (
    FamilyMarks,
    FamilyPrompt,
    answer_schema,
    arguments_schema,
    constrained_by_any,
    finished,
    lazy_without_need,
    prompt_of,
)
from bankml.answers.format import AnswerFormat, Trigger
from bankml.answers.peg.builder import Part
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder
from bankml.text.messages import Message

MARKS = FamilyMarks(
    triggers=tuple(
        Trigger("pattern", one)
        for one in (
            r"^\s+to$",
            r"^<\|channel\|>(?:commentary|analysis)\s+to=functions$",
            r"<\|start\|>assistant(\s+to)",
            r"<\|start\|>assistant(<\|channel\|>(?:commentary|analysis)\s+to)",
        )
    ),
    preserved=("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|end|>"),
    thinking_start="<|channel|>analysis<|message|>",
    thinking_ends=("<|end|>",),
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    thought = "<|start|>assistant<|channel|>analysis<|message|>"
    return finished(
        request,
        p,
        _answer(p, request),
        _prompt(request),
        MARKS,
        continuation=request.continuation("", thought, "<|end|><|start|>assistant<|channel|>final<|message|>"),
        constrained=constrained_by_any(request),
        lazy=lazy_without_need(request),
    )


def _prompt(request: FormatRequest) -> FamilyPrompt:
    """Without a prompt for an answer, the last message ends as one that others follow."""
    prompt = prompt_of(request, [_with_thinking(message) for message in request.messages])
    if request.conversation.add_generation_prompt and not request.conversation.continues:
        return prompt
    before, found, behind = prompt.text.rpartition("<|return|>")
    return FamilyPrompt(before + "<|end|>" + behind if found else prompt.text, prompt.generation)


def _with_thinking(message: Message) -> Message:
    if "reasoning_content" not in message:
        return message
    message = message | {"thinking": message["reasoning_content"]}
    if message.get("tool_calls"):
        del message["content"]
    return message


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    start = p.let(p.rule("start", p.literal("<|start|>assistant")))
    end = p.let(p.rule("end", p.literal("<|end|>")))
    content = p.let(p.rule("message-content", p.until("<|end|>")))
    channel = p.let(p.literal("<|channel|>") + (p.literal("commentary") | p.literal("analysis")))
    constraint_type = p.let(p.characters("[A-Za-z0-9_-]"))
    stray = p.let(p.optional(p.literal("<|channel|>commentary") + p.optional(p.literal(" to=assistant"))))
    start_analysis = p.let(stray + p.literal("<|channel|>analysis<|message|>"))
    if request.extracts_reasoning:
        p.let(p.rule("analysis", start_analysis + p.reasoning(content) + end))
    else:
        p.let(p.rule("analysis", p.content(start_analysis + content + end)))
    analysis = p.let(p.ref("analysis"))
    preamble = p.let(p.rule("preamble", p.literal("<|channel|>commentary<|message|>") + p.content(content) + end))
    final = p.let(p.rule("final", stray + p.literal("<|channel|>final<|message|>") + p.content(content)))
    unsolicited = p.optional(channel) + p.literal(" to=") + content + end
    unsolicited = p.let(p.rule("unsolicited", p.atomic(unsolicited)))
    any_message = p.let(p.rule("any", preamble | analysis))

    def constraint() -> Part:
        return p.let(p.optional(p.space() + p.optional(p.literal("<|constrain|>")) + constraint_type))

    if request.has_schema:
        held = constraint()
        value = p.literal("<|channel|>final") + held + p.literal("<|message|>") + answer_schema(p, request)
        answer = p.let(p.rule("response-format", value))
        return p.repeat(start + analysis, 0) + start + answer
    if not request.calls_tools:
        return p.repeat(start + any_message, 0) + start + (final | unsolicited)
    choice = p.let(p.choice())
    for function in request.functions:
        name = p.let(p.literal(" to=functions.") + p.tool_name(p.literal(function.name)))
        held = constraint()
        arguments = p.let(arguments_schema(p, function))
        in_role = p.let(p.tool(p.tool_open(name + channel + held + p.literal("<|message|>")) + arguments))
        in_channel = p.let(p.tool(p.tool_open(channel + name + held + p.literal("<|message|>")) + arguments))
        choice = p.let(choice | p.rule(f"tool-{function.name}", in_role | in_channel))
    call = p.let(p.trigger_rule("tool-call", choice))
    if request.requires_call:
        return p.repeat(start + any_message, 0) + start + call
    return p.repeat(start + any_message, 0) + start + (call | final)
