"""Which kinds of message a template supports, found as llama.cpp b11192 finds it: probes are rendered, and how the
template used their values is inspected. A probe that fails to render counts up to where it failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import nodes

from bankml.text.jinja.budget import TemplateError, probe_budget
from bankml.text.jinja.interpreter import Interpreter
from bankml.text.jinja.usage import ValueUsage, probe
from bankml.text.jinja.values import Value, from_json

_MARK = "STRING_MARKER"
_CALL = {"id": "call00001", "type": "function", "function": {"name": "tool1"}}
_SCHEMA = {
    "type": "object",
    "properties": {"arg": {"type": "string", "description": "Arg description"}},
    "required": ["arg"],
}
_TOOLS = [
    {
        "name": "tool",
        "type": "function",
        "function": {"name": "tool1", "description": "Tool description", "parameters": _SCHEMA},
    }
]


@dataclass(frozen=True)
class Capabilities:
    """Content as a string and as a list of parts; a system role; tool calls, their arguments as objects, several calls
    of one message."""

    string_content: bool = True
    typed_content: bool = False
    system_role: bool = True
    tool_calls: bool = True
    object_arguments: bool = False
    parallel_tool_calls: bool = True


Path = tuple[int | str, ...]


@dataclass(frozen=True)
class _Outcome:
    """`watched` are the values that were looked up in the messages, as they were before rendering."""

    rendered: bool
    text: bytes
    watched: list[Value]
    usage: ValueUsage


def capabilities(tree: nodes.Template) -> Capabilities:
    string_content, typed_content = _content(tree)
    tool_calls, object_arguments = _tool_calls(tree)
    parallel = _parallel_tool_calls(tree, object_arguments)
    return Capabilities(string_content, typed_content, _system_role(tree), tool_calls, object_arguments, parallel)


def _try(
    tree: nodes.Template,
    messages: Sequence[Mapping[str, Any]],
    *paths: Path,
    tools: Sequence[Mapping[str, Any]] = (),
) -> _Outcome:
    usage = ValueUsage()
    given = {"messages": probe(from_json(list(messages))), "tools": probe(from_json(list(tools)))}
    watched = [_at(given["messages"], path) for path in paths]
    variables = {**given, "bos_token": b"", "eos_token": b"", "add_generation_prompt": True}
    try:
        text = Interpreter(probe_budget(), 0.0, usage).render(tree, variables)
    except TemplateError:
        return _Outcome(False, b"", watched, usage)
    return _Outcome(True, text, watched, usage)


def _at(value: Value, path: Path) -> Value:
    for step in path:
        value = value[step.encode() if isinstance(step, str) else step]
    return value


def _content(tree: nodes.Template) -> tuple[bool, bool]:
    outcome = _try(tree, [{"role": "user", "content": _MARK}], (0, "content"))
    content = outcome.watched[0]
    as_list = outcome.usage.had(content, "selectattr", "array_access")
    strings = outcome.rendered and not (as_list and _MARK.encode() not in outcome.text)
    if as_list or not outcome.usage.had(content, "test_is_string"):
        return strings, as_list
    outcome = _try(tree, [{"role": "user", "content": []}], (0, "content"))
    return strings, outcome.rendered and outcome.usage.had(outcome.watched[0], "selectattr", "array_access")


def _system_role(tree: nodes.Template) -> bool:
    messages = [{"role": "system", "content": "System message"}, {"role": "user", "content": "User message"}]
    outcome = _try(tree, messages, (0, "content"))
    return outcome.usage.used(outcome.watched[0])


def _tool_calls(tree: nodes.Template) -> tuple[bool, bool]:
    calls: Path = (1, "tool_calls")
    outcome = _try(tree, _with_call({"arg": "value"}), calls, (*calls, 0, "function", "arguments", "arg"), tools=_TOOLS)
    supported = True
    if outcome.rendered:
        supported, as_object = (outcome.usage.used(value) for value in outcome.watched)
        if supported and as_object:
            return True, True
    outcome = _try(tree, _with_call('{"arg": "value"}'), calls, tools=_TOOLS)
    return supported and outcome.rendered and outcome.usage.used(outcome.watched[0]), False


def _parallel_tool_calls(tree: nodes.Template, object_arguments: bool) -> bool:
    messages = _with_call({"arg": "value"} if object_arguments else '{"arg": "value"}')
    first = messages[1]["tool_calls"][0]
    messages[1]["tool_calls"] = [first, first | {"id": "call00002"}]
    outcome = _try(tree, messages, (1, "tool_calls", 1, "function"), tools=_TOOLS)
    return outcome.rendered and outcome.usage.used(outcome.watched[0])


def _with_call(arguments: Any) -> list[dict[str, Any]]:
    call = _CALL | {"function": {"name": "tool1", "arguments": arguments}}
    return [
        {"role": "user", "content": "User message"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "Tool response", "tool_call_id": "call00001"},
        {"role": "assistant", "content": "The tool response was 'tool response'"},
        {"role": "user", "content": "User message"},
    ]
