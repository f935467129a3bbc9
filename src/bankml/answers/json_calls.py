"""Tool calls that are JSON objects: the name a value, a key, or in an object within."""

from collections.abc import Callable

from bankml.answers.peg.builder import Part
from bankml.answers.peg.values import json_number, json_value
from bankml.answers.request import FormatRequest, ToolFunction
from bankml.answers.tags import AnswerBuilder
from bankml.answers.tool_format import ToolFormat


def json_calls(
    p: AnswerBuilder,
    request: FormatRequest,
    start: str,
    end: str,
    name: str,
    arguments: str,
    tools: ToolFormat,
    *,
    wrapper: bool = False,
    forced: bool | None = None,
) -> Part:
    """The calls between `start` and `end`. `name` and `arguments` are keys, with a dot where they are within an object;
    "" are the usual ones. `wrapper`: `"type": "function"` may come first. `forced` None: as the request requires."""
    keys = tools.keys
    name, args = name or "name", arguments or "arguments"
    p.let(p.empty())  # the reference makes it, and numbers count
    if keys.name_is_key:
        choice = _choice(p, request, lambda one: _name_is_key(p, one, arguments, args, tools))
    elif "." in name or "." in args:
        choice = _choice(p, request, lambda one: _nested(p, one, name, args, tools))
    else:
        choice = _flat(p, request, name, args, tools, wrapper)
    calls = choice
    if request.parallel:
        calls = p.let(calls + p.repeat(p.space() + p.literal(",") + p.space() + choice, 0))
    if tools.array:
        calls = p.let(p.literal("[") + p.space() + calls + p.space() + p.literal("]"))
    section = p.let(p.trigger_rule("tool-call", p.literal(start) + p.space() + calls + p.space() + p.literal(end)))
    return section if (request.requires_call if forced is None else forced) else p.let(p.optional(section))


def _choice(p: AnswerBuilder, request: FormatRequest, body: Callable[[ToolFunction], Part]) -> Part:
    choice = p.let(p.choice())
    for function in request.functions:
        made = body(function)
        choice = p.let(choice | p.rule(f"tool-{function.name}", made))
    return choice


def _arguments(p: AnswerBuilder, function: ToolFunction) -> Part:
    return p.tool_arguments(p.schema(json_value(p), f"tool-{function.name}-schema", function.document))


def _colon(p: AnswerBuilder, key: str) -> Part:
    return p.literal(f'"{key}"') + p.space() + p.literal(":") + p.space()


def _quoted_id(p: AnswerBuilder) -> Part:
    return p.literal('"') + p.tool_id(p.string_content('"')) + p.literal('"')


def _text_id(p: AnswerBuilder, key: str) -> Part:
    start = p.literal(f'"{key}"') + p.space() + p.literal(":") + p.space()
    return p.let(p.atomic(start + p.literal('"') + p.tool_id(p.string_content('"')) + p.literal('"')))


def _any_id(p: AnswerBuilder, key: str) -> Part:
    return p.let(p.atomic(_colon(p, key) + p.choice(_quoted_id(p), p.tool_id(json_number(p)))))


def _name_is_key(p: AnswerBuilder, function: ToolFunction, arguments: str, key: str, tools: ToolFormat) -> Part:
    keys = tools.keys
    fields: list[Part] = []
    for path, made in ((keys.id, _text_id), (keys.made_id, _any_id)):
        if path:
            one = made(p, path)
            fields.append(p.let(p.optional(one + p.space() + p.optional(p.literal(",") + p.space()))))
    value = p.let(p.empty())
    value = p.let(_colon(p, key) + _arguments(p, function) if arguments else _arguments(p, function))
    fields.append(value)
    inner = p.let(p.empty())
    if not arguments and len(fields) == 1:
        inner = fields[0]
    else:
        inner = p.let(p.literal("{") + p.space())
        for i, one in enumerate(fields):
            inner = p.let(inner + one)
            if i < len(fields) - 1:
                inner = p.let(inner + p.space())
        inner = p.let(inner + p.space() + p.literal("}"))
    head = p.tool_open(p.literal("{")) + p.space()
    # One expression in the reference: the order of its parts decides their numbers.
    whole = (
        head
        + p.literal('"')
        + p.tool_name(p.literal(function.name))
        + p.literal('"')
        + p.space()
        + p.literal(":")
        + p.space()
        + inner
        + p.space()
        + p.tool_close(p.literal("}"))
    )
    return p.let(p.tool(whole))


def _nested(p: AnswerBuilder, function: ToolFunction, name: str, arguments: str, tools: ToolFormat) -> Part:
    name_object, _, name_key = name.rpartition(".") if "." in name else ("", "", name)
    args_object, _, args_key = arguments.rpartition(".") if "." in arguments else ("", "", arguments)
    quoted = p.atomic(p.literal('"') + p.tool_name(p.literal(function.name)) + p.literal('"'))
    named = p.let(p.literal(f'"{name_key}"') + p.space() + p.literal(":") + p.space() + quoted)
    args = p.let(_colon(p, args_key) + _arguments(p, function))
    inner = p.let(
        p.literal("{") + p.space() + named + p.space() + p.literal(",") + p.space() + args + p.space() + p.literal("}")
    )
    body = p.let(p.tool_open(p.literal("{")) + p.space())
    for path, made in ((tools.keys.id, _text_id), (tools.keys.made_id, _any_id)):
        if path and "." not in path:
            one = made(p, path)
            body = p.let(body + p.optional(one + p.space() + p.literal(",") + p.space()))
    field = p.let(_colon(p, name_object or args_object) + inner)
    body = p.let(body + field + p.space() + p.tool_close(p.literal("}")))
    return p.tool(body)


def _flat(
    p: AnswerBuilder, request: FormatRequest, name: str, arguments: str, tools: ToolFormat, wrapper: bool
) -> Part:
    choice = p.let(p.choice())
    name_key, args_key = p.let(p.literal(f'"{name}"')), p.let(p.literal(f'"{arguments}"'))
    for function in request.functions:
        quoted = p.atomic(p.literal('"') + p.tool_name(p.literal(function.name)) + p.literal('"'))
        named = p.let(name_key + p.space() + p.literal(":") + p.space() + quoted)
        args = p.let(args_key + p.space() + p.literal(":") + p.space() + _arguments(p, function))
        made = p.let(_flat_object(p, named, args, name, arguments, tools, wrapper))
        choice = p.let(choice | p.rule(f"tool-{function.name}", p.tool(made)))
    return choice


def _flat_object(
    p: AnswerBuilder, named: Part, args: Part, name: str, arguments: str, tools: ToolFormat, wrapper: bool
) -> Part:
    keys = tools.keys
    call_id, made_id = p.let(p.empty()), None
    if keys.id:
        call_id = _any_id(p, keys.id)
    made_id = p.let(p.empty())
    if keys.made_id:
        made_id = _any_id(p, keys.made_id)
    fields = [(named, name), (args, arguments)]
    if keys.id:
        fields.append((p.let(p.optional(call_id)), keys.id))
    if keys.made_id:
        fields.append((p.let(p.optional(made_id)), keys.made_id))
    fields.sort(key=lambda one: keys.order.index(one[1]) if one[1] in keys.order else len(keys.order))
    kind = p.let(p.empty())
    if wrapper:
        kind = p.let(p.optional(_colon(p, "type") + p.literal('"function"') + p.space() + p.literal(",") + p.space()))
    body = p.let(p.tool_open(p.literal("{")) + p.space() + kind)
    for i, (field, _) in enumerate(fields):
        body = p.let(body + field)
        if i < len(fields) - 1:
            body = p.let(body + p.space() + p.literal(",") + p.space())
    return body + p.space() + p.tool_close(p.literal("}"))
