"""The answers of templates without a parser of their own, by the template's analysis."""

from collections.abc import Callable

from bankml.answers.analysis import TemplateAnalysis
from bankml.answers.format import AnswerFormat, Trigger
from bankml.answers.json_calls import json_calls
from bankml.answers.peg.builder import Part
from bankml.answers.peg.grammar import grammar_text
from bankml.answers.peg.values import json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.schema_types import may_be_string
from bankml.answers.tags import AnswerBuilder
from bankml.text.markers import trim

OPENAI_WRAPPER = '{"type": "function",'


def native_format(request: FormatRequest, analysis: TemplateAnalysis) -> AnswerFormat:
    """Raises SchemaError and SchemaConversionError for schemas, RequestError for what the template refuses."""
    generation_prompt = request.generation_prompt()
    prompt, opening = request.prompt(), generation_prompt
    if request.continued is not None:
        opening = _continued(request, analysis, generation_prompt)
        prompt += opening
    builder = AnswerBuilder()
    arena = builder.build(_answer(builder, request, analysis, generation_prompt))
    auto = request.conversation.tool_choice == "auto"
    has_tools = request.has_tools and bool(analysis.tools.kind)
    trigger = analysis.tools.trigger
    constrained = request.has_schema or (has_tools and (request.requires_call or (auto and bool(trigger))))
    lazy = constrained and not request.has_schema and auto
    triggers: tuple[Trigger, ...] = (Trigger("word", trigger),) if lazy else ()
    if lazy and analysis.openai_wrapper:
        triggers += (Trigger("word", OPENAI_WRAPPER),)
    marks = analysis.reasoning
    return AnswerFormat(
        prompt=prompt,
        opening=opening,
        arena=arena,
        grammar=grammar_text(arena, lazy=lazy) if constrained else "",
        lazy=lazy,
        triggers=triggers,
        preserved=analysis.preserved,
        stops=analysis.stops,
        thinks=marks.thinks,
        thinking_start=trim(marks.start) if marks.thinks else "",
        thinking_ends=(trim(marks.end),) if marks.thinks and trim(marks.end) else (),
        continues=request.continued is not None,
    )


def _continued(request: FormatRequest, analysis: TemplateAnalysis, generation_prompt: str) -> str:
    start, end = analysis.reasoning.start, analysis.reasoning.end
    if not start:
        return request.continuation(generation_prompt, "")
    return request.continuation(generation_prompt.partition(start)[0], start, end)


def _answer(p: AnswerBuilder, request: FormatRequest, analysis: TemplateAnalysis, generation_prompt: str) -> Part:
    marks = analysis.reasoning
    p.let(p.empty())
    extracting = request.extracts_reasoning and marks.thinks
    if extracting and marks.end:
        thought = p.reasoning(p.until(trim(marks.end))) + p.mark(marks.end)
        if marks.start:
            thought = p.mark(marks.start) + p.reasoning(p.until(trim(marks.end))) + p.mark(marks.end)
        reasoning = p.let(p.optional(thought))
    else:
        reasoning = p.let(p.empty())
    answer = p.let(p.empty())
    plain = not marks.thinks
    if request.has_schema:
        answer = p.let(_json_answer(p, request, reasoning))
        plain = False
    elif request.calls_tools and request.template.capabilities.tool_calls:
        answer = p.let(_tools_answer(p, request, analysis, reasoning))
        plain = False
    else:
        answer = p.let(_content_answer(p, analysis, reasoning, extracting))
    if plain:
        return p.up_to(generation_prompt, trim(marks.start)) + answer
    return p.up_to(generation_prompt, trim(marks.start)) << answer


def _json_answer(p: AnswerBuilder, request: FormatRequest, reasoning: Part) -> Part:
    schema = p.schema(json_value(p), "response-format-schema", request.answer_schema)
    value = p.let(p.rule("response-format", p.content(schema)))
    fenced = p.literal("```json") + p.space() + value + p.space() + p.literal("```")
    return reasoning + p.space() + p.choice(fenced, p.space() + value + p.space()) + p.end()


def _content_answer(p: AnswerBuilder, analysis: TemplateAnalysis, reasoning: Part, extracting: bool) -> Part:
    content = analysis.content
    if content.wrapped:
        inside = p.content(p.until(content.end))
        if extracting:
            return reasoning + content.start + inside + content.end + p.end()
        return p.content(p.until(content.start)) + content.start + inside + content.end + p.end()
    return reasoning + p.content(p.rest()) + p.end()


def _tools_answer(p: AnswerBuilder, request: FormatRequest, analysis: TemplateAnalysis, reasoning: Part) -> Part:
    if analysis.tools.kind == "json":
        return _json_tools(p, request, analysis, reasoning)
    if analysis.tools.kind == "tagged json":
        return _tagged_json_tools(p, request, analysis, reasoning)
    if analysis.tools.kind == "tagged":
        return _tagged_tools(p, request, analysis, reasoning)
    return p.empty()


def _json_tools(p: AnswerBuilder, request: FormatRequest, analysis: TemplateAnalysis, reasoning: Part) -> Part:
    tools, keys = analysis.tools, analysis.tools.keys
    name, arguments = keys.name, keys.arguments
    if keys.function and keys.function != "function" and "." not in name:
        name, arguments = f"{keys.function}.{name}", f"{keys.function}.{arguments}"
    p.let(p.empty())  # the reference makes it, and numbers count
    per_call = not tools.section_start and bool(tools.call_start)
    start, end = (tools.call_start, tools.call_end) if per_call else (tools.section_start, tools.section_end)
    calls = p.let(json_calls(p, request, start, end, name, arguments, tools, wrapper=analysis.openai_wrapper))
    if per_call:
        calls = p.let(p.trigger_rule("tool-calls", p.repeat(calls + p.space(), 1)))
    if analysis.content.wrapped:
        inside = p.content(p.until(analysis.content.end))
        wrapped = p.let(p.optional(analysis.content.start + inside + analysis.content.end))
        return reasoning + wrapped + calls + p.end()
    content = p.optional(p.content(p.until(tools.trigger or "{")))
    return reasoning + content + calls + p.end()


def _function_part(
    p: AnswerBuilder, analysis: TemplateAnalysis, name: str, call_id: Part, arguments: Part, ahead: Part | None
) -> Part:
    tools = analysis.tools
    has_id = _has_id(analysis)
    opened = p.let(p.tool_open(tools.name_prefix + p.tool_name(p.literal(name)) + tools.name_suffix))
    function = p.let(p.empty())
    whole = True
    if tools.arguments_separator:
        opened = p.let(opened + p.space() + p.literal(tools.arguments_separator))
    if tools.name_suffix:
        function = p.let(opened + call_id + p.space() + arguments)
    elif has_id:
        function = p.let(p.atomic(opened + call_id) + p.space() + arguments)
    elif ahead is not None:
        function = p.let(p.atomic(opened + call_id + p.space() + ahead) + arguments)
    else:
        function, whole = p.let(opened + call_id + p.space() + arguments), False
    if tools.close:
        function = p.let(function + p.space() + p.tool_close(p.literal(tools.close)))
    elif tools.call_end:
        end = p.literal(tools.call_end)
        seen = p.let(p.ahead(p.space() + end if tools.space_between else end))
        function = p.let(function + p.tool_close(seen))
    else:
        function = p.let(function + p.tool_close(p.space()))
    return function if whole else p.let(p.atomic(function))


def _has_id(analysis: TemplateAnalysis) -> bool:
    tools = analysis.tools
    return tools.id_place == "before arguments" and bool(tools.id_prefix and tools.id_suffix)


def _tagged_json_tools(p: AnswerBuilder, request: FormatRequest, analysis: TemplateAnalysis, reasoning: Part) -> Part:
    tools = analysis.tools
    choice = p.let(p.choice())
    for function in request.functions:
        call_id = p.let(p.empty())
        if _has_id(analysis):
            found = p.optional(tools.id_prefix + p.tool_id(p.until(tools.id_suffix)))
            call_id = p.let(found + tools.id_suffix)
        schema = p.schema(json_value(p), f"tool-{function.name}-schema", function.document)
        arguments = p.let(p.tool_arguments(schema))
        made = _function_part(p, analysis, function.name, call_id, arguments, None)
        choice = p.let(choice | p.rule(f"tool-{function.name}", made))
    calls = p.let(p.empty())
    if tools.call_start:
        one = p.let(tools.call_start + choice + tools.call_end)
        calls = p.let(p.trigger_rule("tool-call", one + p.repeat(p.space() + one, 0) if request.parallel else one))
        if tools.section_start:
            end = p.literal(tools.section_end) if tools.section_end else p.end()
            section = p.literal(tools.section_start) + p.space() + calls + p.space() + end
            calls = p.let(p.trigger_rule("tool-calls", section))
    elif request.parallel:
        others = p.repeat(", " + choice, 0)
        calls = p.let(p.trigger_rule("tool-call", tools.section_start + choice + others + tools.section_end))
    else:
        calls = p.let(p.trigger_rule("tool-call", tools.section_start + choice + tools.section_end))
    return _with_content(p, request, analysis, reasoning, calls)


def _tagged_tools(p: AnswerBuilder, request: FormatRequest, analysis: TemplateAnalysis, reasoning: Part) -> Part:
    tools = analysis.tools
    text = p.let(p.rule("until-suffix", p.until(tools.value_suffix)))
    choice = p.let(p.choice())
    for function in request.functions:
        arguments, required = _arguments(p, analysis, function, text)
        call_id = p.let(p.empty())
        if _has_id(analysis):
            call_id = p.let(p.optional(tools.id_prefix + p.tool_id(p.until(tools.id_suffix)) + tools.id_suffix))
        ahead = None
        if tools.argument_name_prefix and required:
            ahead = p.let(p.ahead(p.literal(tools.argument_name_prefix)))
        made = _function_part(p, analysis, function.name, call_id, arguments, ahead)
        choice = p.let(choice | p.rule(f"tool-{function.name}", made))
    calls = p.let(p.empty())
    if tools.call_start:
        one = p.let(tools.call_start + p.space() + choice + p.space() + tools.call_end)
        if request.parallel:
            calls = p.let(p.trigger_rule("tool-call", one + p.repeat(p.space() + one, 0) + p.space()))
        else:
            calls = p.let(p.trigger_rule("tool-call", one + p.space()))
        if tools.section_start:
            end = p.literal(tools.section_end) + p.space() if tools.section_end else p.end()
            section = p.literal(tools.section_start) + p.space() + calls + p.space() + end
            calls = p.let(p.trigger_rule("tool-calls", section))
    elif request.parallel:
        others = p.repeat(", " + choice, 0)
        inside = tools.section_start + p.space() + choice + others + p.space() + tools.section_end
        calls = p.let(p.trigger_rule("tool-call", inside))
    else:
        inside = tools.section_start + p.space() + choice + p.space() + tools.section_end
        calls = p.let(p.trigger_rule("tool-call", inside))
    return _with_content(p, request, analysis, reasoning, calls)


def _arguments(p: AnswerBuilder, analysis: TemplateAnalysis, function: ToolFunction, text: Part) -> tuple[Part, bool]:
    """The arguments of a function: the required ones in their order, then the others in any. Whether some are
    required."""
    tools = analysis.tools
    required: list[Part] = []
    optional: list[Part] = []
    for one in function.properties:
        rule = f"tool-{function.name}-arg-{one.name}"
        document = function.of(one)
        named = tools.argument_name_prefix + p.argument_name(p.literal(one.name)) + tools.argument_name_suffix

        def value(
            name: str = rule, string: bool = may_be_string(one.schema, document), document: object = document
        ) -> Part:
            close = p.argument_close(p.literal(tools.value_suffix))
            if string:
                return p.including(p.string_value(text) + close, tools.value_suffix)
            return p.value(p.schema(json_value(p), f"{name}-schema", document)) + close  # type: ignore[arg-type]

        made = p.let(p.argument(p.argument_open(named) + tools.value_prefix + value()))
        (required if one.required else optional).append(p.let(p.rule(rule, made)))
    return optional_behind(p, required, optional, p.space), bool(required)


def optional_behind(p: AnswerBuilder, required: list[Part], optional: list[Part], space: Callable[[], Part]) -> Part:
    """The required parts in their order, then any of the others, any number of times, with white space between."""
    made = p.let(p.empty())
    for i, part in enumerate(required):
        if i:
            made = p.let(made + space())
        made = p.let(made + part)
    if optional:
        choice = p.let(p.choice())
        for part in optional:
            choice = p.let(choice | part)
        made = p.let(made + p.repeat(space() + choice, 0))
    return made


def _with_content(
    p: AnswerBuilder, request: FormatRequest, analysis: TemplateAnalysis, reasoning: Part, calls: Part
) -> Part:
    if not request.requires_call:
        calls = p.let(p.optional(calls))
    trigger = analysis.tools.trigger
    before = p.let(p.until(trigger) if trigger else p.empty())
    return reasoning + p.optional(p.content(before)) + calls + p.end()
