"""What the families have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bankml.answers.format import AnswerFormat, Mapping, Trigger
from bankml.answers.peg.builder import Part
from bankml.answers.peg.grammar import grammar_text
from bankml.answers.peg.values import json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.tags import AnswerBuilder
from bankml.text.messages import Message


@dataclass(frozen=True)
class FamilyMarks:
    """`triggers` awaken a lazy grammar; the rest is as in AnswerFormat."""

    triggers: tuple[Trigger, ...] = ()
    preserved: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    thinks: bool = True
    thinking_start: str = ""
    thinking_ends: tuple[str, ...] = ()
    mapping: Mapping = "native"


@dataclass(frozen=True)
class FamilyPrompt:
    """The prompt, without a continued message, and what the template appends to it to ask for an answer."""

    text: str
    generation: str


def prompt_of(
    request: FormatRequest, messages: Sequence[Message] | None = None, extra: dict[str, Any] | None = None
) -> FamilyPrompt:
    return FamilyPrompt(request.prompt(messages, extra), request.generation_prompt(messages, extra))


def words(*triggers: str) -> tuple[Trigger, ...]:
    return tuple(Trigger("word", one) for one in triggers)


def finished(
    request: FormatRequest,
    p: AnswerBuilder,
    root: Part,
    prompt: FamilyPrompt,
    marks: FamilyMarks,
    *,
    continuation: str,
    constrained: bool,
    lazy: bool,
) -> AnswerFormat:
    """`continuation`: the beginning of a continued answer. `constrained`: there is a grammar, a `lazy` one or not."""
    continues = request.continued is not None
    opening = continuation if continues else prompt.generation
    arena = p.build(root)
    lazy = lazy and constrained
    return AnswerFormat(
        prompt=prompt.text + (opening if continues else ""),
        opening=opening,
        arena=arena,
        grammar=grammar_text(arena, lazy=lazy) if constrained else "",
        lazy=lazy,
        triggers=marks.triggers if lazy else (),
        preserved=marks.preserved,
        stops=marks.stops,
        thinks=marks.thinks,
        thinking_start=marks.thinking_start,
        thinking_ends=marks.thinking_ends,
        mapping=marks.mapping,
        continues=continues,
    )


def lazy_without_need(request: FormatRequest) -> bool:
    """Lazy unless a value or a call is required."""
    return not (request.has_schema or (request.has_tools and request.requires_call))


def constrained_by_any(request: FormatRequest) -> bool:
    return request.has_schema or request.calls_tools


def arguments_schema(p: AnswerBuilder, function: ToolFunction) -> Part:
    """The arguments as one JSON object."""
    return p.tool_arguments(p.schema(json_value(p), f"tool-{function.name}-schema", function.document))


def answer_schema(p: AnswerBuilder, request: FormatRequest, name: str = "response-format-schema") -> Part:
    """The content as a JSON value."""
    return p.content(p.schema(json_value(p), name, request.answer_schema))


def permuted(p: AnswerBuilder, rule: str, parts: Sequence[Part]) -> Part:
    """All parts, in any order; in their order where they are more than six."""
    if not parts:
        return p.empty()
    if len(parts) == 1 or len(parts) > MAX_PERMUTED:
        return p.sequence(*parts)
    made: dict[int, Part] = {}

    def remaining(bits: int) -> Part:
        if not bits:
            return p.let(p.empty())
        if bits not in made:
            choice = p.let(p.choice())
            for i, part in enumerate(parts):
                if bits >> i & 1:
                    choice = p.let(choice | (part + remaining(bits & ~(1 << i))))
            made[bits] = p.let(p.rule(f"{rule}-{bits}", choice))
        return made[bits]

    return remaining((1 << len(parts)) - 1)


MAX_PERMUTED = 6


def with_thinking(messages: Sequence[Message]) -> list[Message]:
    """Reasoning under the name `thinking` too, which some templates look for."""
    return [
        message | {"thinking": message["reasoning_content"]} if "reasoning_content" in message else message
        for message in messages
    ]
