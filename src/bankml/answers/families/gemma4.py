"""Gemma 4: calls in a notation of its own, which is no JSON; thoughts in channels."""

import json
from collections.abc import Sequence
from typing import Any

from bankml.answers.families.base import (
    FamilyMarks,
    FamilyPrompt,
    answer_schema,
    constrained_by_any,
    finished,
    lazy_without_need,
    prompt_of,
    words,
)
from bankml.answers.format import AnswerFormat
from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_bool, json_null, json_number
from bankml.answers.request import FormatRequest
from bankml.answers.tags import AnswerBuilder
from bankml.text.messages import Message

TURN, TURN_END = "<|turn>model\n", "<turn|>\n"
CHANNEL, CHANNEL_END = "<|channel>", "<channel|>"
CALL, CALL_END, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
MARKS = FamilyMarks(
    triggers=words(CALL),
    preserved=(CHANNEL, CHANNEL_END, CALL, CALL_END, "<|turn>"),
    thinking_start="<|channel>thought",
    thinking_ends=(CHANNEL_END,),
    mapping="gemma4",
)


def describe(request: FormatRequest) -> AnswerFormat:
    p = AnswerBuilder()
    messages = request.messages
    if "{#- OpenAI Chat Completions:" not in request.source:
        messages = with_tool_responses(messages)
    prompt = prompt_of(request, messages)
    turn_ended = prompt.text.endswith(TURN_END)
    asks = request.conversation.add_generation_prompt and not request.conversation.continues
    if asks and turn_ended:
        # A turn with content and calls is closed by the template, which then writes no turn of the model.
        prompt = FamilyPrompt(prompt.text + TURN, TURN)
    return finished(
        request,
        p,
        _answer(p, request),
        prompt,
        MARKS,
        continuation=request.continuation(TURN if turn_ended else "", "<|channel>thought\n", CHANNEL_END),
        constrained=constrained_by_any(request),
        lazy=lazy_without_need(request),
    )


def with_tool_responses(messages: Sequence[Message]) -> list[Message]:
    """Older templates look for the results of calls, and the answer behind them, in the message that calls."""
    out: list[Message] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message["role"] != "assistant" or not message.get("tool_calls"):
            out.append(message)
            continue
        calls = message["tool_calls"]
        turn: Message = {"role": "assistant", "tool_calls": calls}
        responses: list[dict[str, Any]] = []
        while at < len(messages) and messages[at]["role"] == "tool":
            responses.append(_response(messages[at], calls, len(responses)))
            at += 1
        if responses:
            turn["tool_responses"] = responses
        if at < len(messages) and messages[at]["role"] == "assistant":
            following = messages[at]
            if not following.get("tool_calls") and following.get("content"):
                turn["content"] = following["content"]
                at += 1
        if "reasoning_content" in message:
            turn["reasoning_content"] = message["reasoning_content"]
        out.append(turn)
    return out


def _response(message: Message, calls: Sequence[Any], index: int) -> dict[str, Any]:
    response: Any = message.get("content")
    if isinstance(response, str):
        try:
            response = json.loads(response)
        except (ValueError, RecursionError):
            response = message["content"]
    name = calls[index]["function"]["name"] if index < len(calls) else ""
    return {"name": name or message.get("tool_call_id", ""), "response": response}


def _answer(p: AnswerBuilder, request: FormatRequest) -> Part:
    start = p.let(p.rule("start", p.optional(p.literal(TURN))))
    thought_start, inside = p.literal("<|channel>thought"), p.until(CHANNEL_END)
    if request.extracts_reasoning:
        p.let(p.rule("thought", thought_start + p.space() + p.reasoning(inside) + p.literal(CHANNEL_END)))
    else:
        p.let(p.rule("thought", p.content(thought_start + p.space() + inside + p.literal(CHANNEL_END))))
    empty = p.let(p.gbnf(p.repeat(p.literal(CHANNEL) + p.not_ahead(p.literal("thought")), 0), ""))
    ahead = p.ahead(p.literal(CHANNEL)) + empty + p.ref("thought")
    thought = p.let(ahead | p.not_ahead(p.literal(CHANNEL)))
    if request.has_schema:
        value = p.let(p.literal("```json") << answer_schema(p, request) << p.literal("```"))
        return start + p.optional(thought) + value
    if request.calls_tools:
        return _with_calls(p, request, start, thought)
    content = p.let(p.rule("content", p.content(p.until(CHANNEL, CHANNEL_END))))
    message = p.let(p.rule("message", thought + content))
    return start + p.repeat(message, 1)


def _with_calls(p: AnswerBuilder, request: FormatRequest, start: Part, thought: Part) -> Part:
    _values(p)
    choice = p.let(p.choice())
    for function in request.functions:
        opened = p.tool_open(p.tool_name(p.literal(function.name)) + p.ahead(p.literal("{")))
        called = p.tool(p.sequence(opened, p.tool_arguments(p.ref("gemma4-dict"))))
        choice = p.let(choice | p.rule(f"tool-{function.name}", called))
    call = p.repeat("<|tool_call>call:" + choice + CALL_END, int(request.requires_call), request.most_calls)
    calls = p.let(p.trigger_rule("tool-call", call))
    if request.requires_call:
        return start + thought + calls
    scan = p.let(p.rule("scan-to-toolcall", p.until(CALL)))
    content = p.let(p.rule("content", p.content(p.until(CHANNEL, CHANNEL_END, CALL))))
    message = p.let(p.rule("message", thought + content))
    return start + p.repeat(message, 0) + scan + calls


def _values(p: AnswerBuilder) -> None:
    p.let(p.rule("gemma4-string-content", p.until(QUOTE)))
    p.let(p.rule("gemma4-string", p.literal(QUOTE) + p.ref("gemma4-string-content") + p.literal(QUOTE)))
    p.let(p.rule("gemma4-bool", json_bool(p)))
    p.let(p.rule("gemma4-null", json_null(p)))
    p.let(p.rule("gemma4-number", json_number(p)))
    p.let(p.rule("gemma4-dict-key", p.rule("gemma4-dict-key-name", p.characters("[^:}]")) + p.literal(":")))
    p.let(p.rule("gemma4-dict-kv", p.ref("gemma4-dict-key") + p.space() + p.ref("gemma4-value")))
    p.let(p.recursive_rule("gemma4-dict", lambda: _listed(p, "{}", "gemma4-dict-kv")))
    p.let(p.recursive_rule("gemma4-array", lambda: _listed(p, "[]", "gemma4-value")))
    kinds = ("string", "dict", "array", "number", "bool", "null")
    p.let(p.recursive_rule("gemma4-value", lambda: p.choice(*(p.ref(f"gemma4-{kind}") for kind in kinds))))


def _listed(p: AnswerBuilder, brackets: str, member_rule: str) -> Part:
    ws = p.let(p.space())
    member = p.let(p.ref(member_rule))
    members = p.let(p.sequence(member, p.repeat(p.sequence(p.literal(","), ws, member), 0)))
    close = brackets[1]
    return p.sequence(p.literal(brackets[0]), ws, p.choice(p.literal(close), p.sequence(members, ws, p.literal(close))))
