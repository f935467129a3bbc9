"""Ministral 3, Mistral Large 3 and Magistral: thoughts in [THINK], calls as [TOOL_CALLS]name[ARGS]{…}."""

from bankml.answers.families.base import FamilyMarks, answer_schema, arguments_schema, finished, prompt_of, words
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder
from bankml.text.messages import Message

MARKS = FamilyMarks(
    triggers=words("[TOOL_CALLS]"),
    preserved=("[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"),
    thinking_start="[THINK]",
    thinking_ends=("[/THINK]",),
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    prompt = prompt_of(request, [_with_blocks(message) for message in request.messages])
    return finished(
        request,
        p,
        _answer(p, request),
        prompt,
        MARKS,
        continuation=request.continuation("", "[THINK]", "[/THINK]"),
        constrained=request.has_schema or request.calls_tools,
        lazy=request.has_tools and request.conversation.tool_choice == "auto",
    )


def _with_blocks(message: Message) -> Message:
    """A system's or assistant's message with its thought as a block of its content."""
    if message["role"] not in ("system", "assistant"):
        return message
    blocks: list[dict[str, str]] = []
    if "reasoning_content" in message:
        blocks.append({"type": "thinking", "thinking": message["reasoning_content"]})
    content = message.get("content")
    if isinstance(content, str):
        blocks.append({"type": "text", "text": content})
    elif content is not None:
        blocks += content
    adjusted = message | {"content": blocks}
    adjusted.pop("reasoning_content", None)
    return adjusted


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    start = p.let(p.empty())
    reasoning = p.empty()
    if request.extracts_reasoning:
        reasoning = p.optional("[THINK]" + p.reasoning(p.until("[/THINK]")) + "[/THINK]")
    p.let(reasoning)
    if request.has_schema:
        return start + (reasoning << "```json" << answer_schema(p, request, "response-format") << "```")
    if request.calls_tools:
        choice = p.let(p.choice())
        for function in request.functions:
            opened = p.tool_open(p.tool_name(p.literal(function.name)) + "[ARGS]")
            choice = p.let(choice | p.rule(f"tool-{function.name}", opened + arguments_schema(p, function)))
        call = p.repeat("[TOOL_CALLS]" + choice, int(request.requires_call), request.most_calls)
        calls = p.let(p.trigger_rule("tool-call", call))
        return start + (reasoning << p.content(p.until("[TOOL_CALLS]")) << calls)
    return start + (reasoning << p.content(p.rest()))
