"""The body of `POST /api/chat`: a conversation to be answered, or an empty one that loads or unloads a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.api import fields
from bankml.api.chat_request import Unplayed, refuse_unplayed
from bankml.api.json_in import read_object
from bankml.api.ollama.request import UNPLAYED, Asked, check_format, read_asked

CHAT_UNPLAYED: Unplayed = {**UNPLAYED, "tools": (([],), "tools are not supported: bankML does not call tools")}

ROLES = ("system", "user", "assistant")

MESSAGE_UNPLAYED: Unplayed = {
    "images": (([],), "images are not read: only text is supported"),
    "tool_calls": (([],), "tools are not supported: bankML does not call tools"),
    "tool_name": (("",), "tools are not supported: bankML does not call tools"),
    "tool_call_id": (("",), "tools are not supported: bankML does not call tools"),
}


@dataclass(frozen=True)
class Chat:
    """One request, checked. `messages` are those of a `/v1/chat/completions` body; none of them asks for no answer."""

    asked: Asked
    messages: tuple[Mapping[str, str], ...]


def read_chat(data: bytes) -> Chat:
    """Reads a request's body. Raises RequestError with one sentence: the field, what is allowed and what came."""
    body = read_object(data)
    refuse_unplayed(body, CHAT_UNPLAYED)
    messages = body.get("messages")
    if messages is not None and not isinstance(messages, list):
        raise fields.refuse("messages", f"expected an array, but got {fields.shown(messages)}")
    asked = read_asked(body)
    if not messages:
        check_format(asked)
    return Chat(asked, read_messages(messages or []))


def read_messages(messages: list[Any]) -> tuple[Mapping[str, str], ...]:
    """Messages as a `/v1/chat/completions` body has them. Raises RequestError naming `messages[i]`."""
    return tuple(_message(message, f"messages[{i}]") for i, message in enumerate(messages))


def _message(message: Any, path: str) -> Mapping[str, str]:
    """A message without content has an empty one, as Ollama reads it: its Python client leaves empty fields out."""
    if not isinstance(message, dict):
        raise fields.refuse(path, f"expected an object, but got {fields.shown(message)}")
    refuse_unplayed(message, MESSAGE_UNPLAYED, f"{path}.")
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
