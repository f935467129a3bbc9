"""The body of `POST /api/chat`: a conversation, or an empty one that loads or unloads a model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bankml.api.ollama.request import UNSUPPORTED, OllamaRequest, read_common, read_think
from bankml.api.reading import fields
from bankml.api.reading.generation import Unsupported, refuse_unsupported
from bankml.api.reading.json_body import read_object
from bankml.api.reading.tools import read_tools
from bankml.text.answer import compact_json
from bankml.text.messages import Conversation, Message

ROLES = ("system", "user", "assistant", "tool")

MESSAGE_UNSUPPORTED: Unsupported = {
    "images": (([],), "images are not read: only text is supported"),
}


def read_chat(data: bytes) -> OllamaRequest:
    """Reads a request's body. Raises RequestError with one sentence: the field, what is accepted and what was
    received."""
    body = read_object(data)
    refuse_unsupported(body, UNSUPPORTED)
    messages = body.get("messages")
    if messages is not None and not isinstance(messages, list):
        raise fields.refuse("messages", f"expected an array, but got {fields.shown(messages)}")
    read = read_messages(messages or [])
    tools, _, _ = read_tools({"tools": body.get("tools")})
    thinks, arguments = read_think(body)

    def conversation() -> Conversation:
        made = Conversation.of(read)
        return replace(made, tools=tools, enable_thinking=thinks, template_arguments=arguments)

    return read_common(body, conversation if read else None)


def read_messages(messages: list[Any]) -> list[Message]:
    """The messages of a request. Raises RequestError naming `messages[i]`."""
    return [_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def _message(message: Any, path: str) -> Message:
    """A message without content has an empty one, as Ollama reads it: its Python client omits empty fields."""
    if not isinstance(message, dict):
        raise fields.refuse(path, f"expected an object, but got {fields.shown(message)}")
    refuse_unsupported(message, MESSAGE_UNSUPPORTED, f"{path}.")
    role = _text(message, "role", path).lower()
    if role not in ROLES:
        why = f"expected one of {', '.join(ROLES)}"
        raise fields.refuse(f"{path}.role", f"{why}, but got {fields.shown(message.get('role'))}")
    read: Message = {"role": role, "content": _text(message, "content", path)}
    for name, known in (("thinking", "reasoning_content"), ("tool_name", "name"), ("tool_call_id", "tool_call_id")):
        if text := _text(message, name, path):
            read[known] = text
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None):
        raise fields.refuse(f"{path}.tool_calls", f"expected an array, but got {fields.shown(calls)}")
    if calls:
        read["tool_calls"] = [_call(call, f"{path}.tool_calls[{i}]") for i, call in enumerate(calls)]
    return read


def _call(call: Any, path: str) -> dict[str, Any]:
    """A call as templates see it: Ollama's has its arguments as an object."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
        raise fields.refuse(f"{path}.function", f"expected an object with a name, but got {fields.shown(function)}")
    arguments = function.get("arguments", {})
    if not isinstance(arguments, dict):
        raise fields.refuse(f"{path}.function.arguments", f"expected an object, but got {fields.shown(arguments)}")
    read = {"type": "function", "function": {"name": name, "arguments": compact_json(arguments)}}
    return read | ({"id": call["id"]} if isinstance(call.get("id"), str) and call["id"] else {})


def _text(message: Mapping[str, Any], name: str, path: str) -> str:
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise fields.refuse(f"{path}.{name}", f"expected a string, but got {fields.shown(value)}")
    return value or ""
