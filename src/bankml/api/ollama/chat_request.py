"""The body of `POST /api/chat`: a conversation, or an empty one that loads or unloads a model."""

from collections.abc import Mapping
from typing import Any

from bankml.api.ollama.request import TOOLS_UNSUPPORTED, UNSUPPORTED, OllamaRequest, read_common
from bankml.api.reading import fields
from bankml.api.reading.generation import Unsupported, refuse_unsupported
from bankml.api.reading.json_body import read_object
from bankml.text.messages import Conversation, Message

CHAT_UNSUPPORTED: Unsupported = {**UNSUPPORTED, "tools": (([],), TOOLS_UNSUPPORTED)}

ROLES = ("system", "user", "assistant")

MESSAGE_UNSUPPORTED: Unsupported = {
    "images": (([],), "images are not read: only text is supported"),
    "tool_calls": (([],), TOOLS_UNSUPPORTED),
    "tool_name": (("",), TOOLS_UNSUPPORTED),
    "tool_call_id": (("",), TOOLS_UNSUPPORTED),
}


def read_chat(data: bytes) -> OllamaRequest:
    """Reads a request's body. Raises RequestError with one sentence: the field, what is accepted and what was
    received."""
    body = read_object(data)
    refuse_unsupported(body, CHAT_UNSUPPORTED)
    messages = body.get("messages")
    if messages is not None and not isinstance(messages, list):
        raise fields.refuse("messages", f"expected an array, but got {fields.shown(messages)}")
    read = read_messages(messages or [])
    return read_common(body, (lambda: Conversation.of(read)) if read else None)


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
        why = "tools are not supported" if role == "tool" else f"expected one of {', '.join(ROLES)}"
        raise fields.refuse(f"{path}.role", f"{why}, but got {fields.shown(message.get('role'))}")
    read = {"role": role, "content": _text(message, "content", path)}
    if thought := _text(message, "thinking", path):
        read["reasoning_content"] = thought
    return read


def _text(message: Mapping[str, Any], name: str, path: str) -> str:
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise fields.refuse(f"{path}.{name}", f"expected a string, but got {fields.shown(value)}")
    return value or ""
