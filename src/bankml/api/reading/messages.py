"""The messages of a chat request, read as llama-server b11192 reads them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bankml.api.reading.tools import read_tools
from bankml.errors import RequestError
from bankml.text.messages import Continuation, Conversation, Message, continuation, continued_part

REASONING_FORMATS = ("none", "auto", "deepseek", "deepseek-legacy")

_MEDIA = {"image_url": "image", "input_audio": "audio", "input_video": "video", "video_url": "video"}


def read_conversation(body: Mapping[str, Any]) -> Conversation:
    """The conversation of a chat request's body. Raises RequestError, in llama-server's words where it has some."""
    if "messages" not in body:
        raise RequestError("'messages' is required")
    messages = read_messages(body["messages"])
    add_generation_prompt = _boolean(body, "add_generation_prompt", True)
    continues, by_itself = _continuation(body, messages)
    if by_itself:
        add_generation_prompt = False
    if continues and add_generation_prompt:
        raise RequestError("Cannot set both add_generation_prompt and continue_final_message to true.")
    if continues and messages[-1]["role"] == "assistant" and "tool_calls" in messages[-1]:
        raise RequestError("Cannot continue an assistant message that contains tool calls.")
    enable_thinking, arguments = _template_arguments(body)
    tools, choice, called = read_tools(body)
    return Conversation(
        messages,
        add_generation_prompt,
        continues,
        enable_thinking,
        arguments,
        tools,
        _reasoning_format(body),
        choice,
        called,
        _parallel(body),
        repeats=by_itself or _boolean(body, "echo", False),
    )


def read_messages(messages: Any) -> list[Message]:
    """The messages of a request, checked and reduced to what templates see. Raises RequestError."""
    if not isinstance(messages, list):
        raise RequestError("Expected 'messages' to be an array")
    if not messages:
        raise RequestError("'messages' is empty: at least one message is needed")
    for message in messages:
        _check_content(message)
    return [_read_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def _check_content(message: Any) -> None:
    given = message if isinstance(message, dict) else {}
    if given.get("role") != "assistant" and "content" not in given:
        raise RequestError("All non-assistant messages must contain 'content'")
    if "content" not in given:
        if "tool_calls" not in given:
            raise RequestError("Assistant message must contain either 'content' or 'tool_calls'!")
        return
    content = given["content"]
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise RequestError("Expected 'content' to be a string or an array")
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in _MEDIA:
            raise RequestError(
                f"{_MEDIA[kind]} input is not supported - hint: if this is unexpected, "
                "you may need to provide the mmproj"
            )
        if kind != "text":
            raise RequestError("unsupported content[].type")


def _read_message(message: Mapping[str, Any], where: str) -> Message:
    if "role" not in message:
        raise RequestError(f"Failed to parse messages: Missing 'role' in message: {_shown(message)}")
    out: Message = {"role": _string(message, "role", where)}
    content = message.get("content")
    if isinstance(content, list) and content:
        out["content"] = [
            {"type": "text", "text": _string(part, "text", f"{where}.content[{i}]")} for i, part in enumerate(content)
        ]
    else:
        out["content"] = content or ""
    for key in ("reasoning_content", "name", "tool_call_id"):
        if key in message and _string(message, key, where):
            out[key] = message[key]
    if "tool_calls" in message:
        calls = message["tool_calls"]
        if not isinstance(calls, list | None):
            raise RequestError(f"{where}.tool_calls must be an array, got {_shown(calls)}")
        if calls:
            out["tool_calls"] = [_read_tool_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(calls)]
    return out


def _read_tool_call(call: Any, where: str) -> dict[str, Any]:
    if not isinstance(call, dict) or "type" not in call:
        raise RequestError(f"Failed to parse messages: Missing tool call type: {_shown(call)}")
    if call["type"] != "function":
        raise RequestError(f"Failed to parse messages: Unsupported tool call type: {_shown(call)}")
    function = call.get("function")
    if not isinstance(function, dict):
        raise RequestError(f"Failed to parse messages: Missing tool call function: {_shown(call)}")
    if "name" not in function:
        raise RequestError(f"Failed to parse messages: Missing tool call name: {_shown(call)}")
    if "arguments" not in function:
        raise RequestError(f"{where}.function.arguments is missing")
    arguments = function["arguments"]
    text = arguments if isinstance(arguments, str) else _compact(arguments)
    read = {"type": "function", "function": {"name": _string(function, "name", where + ".function"), "arguments": text}}
    if "id" in call and _string(call, "id", where):
        read["id"] = call["id"]
    return read


def _continuation(body: Mapping[str, Any], messages: Sequence[Message]) -> tuple[Continuation, bool]:
    """What is continued, and whether that follows from the messages alone: an assistant message at their end."""
    asked = body.get("continue_final_message", False)
    if asked not in (True, False, "content", "reasoning_content", None):
        raise RequestError(
            f"continue_final_message must be true, false, content or reasoning_content, got {_shown(asked)}"
        )
    if not asked:
        continues = continuation(messages)
        return continues, bool(continues)
    if asked in ("content", "reasoning_content"):
        return ("reasoning" if asked == "reasoning_content" else "content"), False
    return continued_part(messages[-1]), False


def _template_arguments(body: Mapping[str, Any]) -> tuple[bool | None, dict[str, Any]]:
    given = body.get("chat_template_kwargs", {})
    if not isinstance(given, dict | None):
        raise RequestError(f"chat_template_kwargs must be an object, got {_shown(given)}")
    arguments = dict(given or {})
    thinking = arguments.get("enable_thinking")
    if isinstance(thinking, str):
        raise RequestError('invalid type for "enable_thinking" (expected boolean, got string)')
    enable_thinking = thinking if isinstance(thinking, bool) else None
    effort = body.get("reasoning_effort")
    if not isinstance(effort, str | None):
        raise RequestError(f"reasoning_effort must be a string, got {_shown(effort)}")
    if effort == "none":
        enable_thinking = False
        arguments.pop("reasoning_effort", None)
    elif effort:
        arguments["reasoning_effort"] = effort
    return enable_thinking, arguments


def _reasoning_format(body: Mapping[str, Any]) -> str:
    wanted = body.get("reasoning_format")
    if wanted not in (None, *REASONING_FORMATS):
        raise RequestError(f"Unknown reasoning format: {wanted if isinstance(wanted, str) else _shown(wanted)}")
    return wanted or ""


def _parallel(body: Mapping[str, Any]) -> bool | None:
    """None, as the template's default, for what is no boolean, as in llama-server."""
    asked = body.get("parallel_tool_calls")
    return asked if isinstance(asked, bool) else None


def _boolean(body: Mapping[str, Any], key: str, default: bool) -> bool:
    value = body.get(key, default)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise RequestError(f"{key} must be true or false, got {_shown(value)}")
    return value


def _string(holder: Mapping[str, Any], key: str, where: str) -> str:
    if key not in holder:
        raise RequestError(f"{where}.{key} is missing")
    value = holder[key]
    if not isinstance(value, str):
        raise RequestError(f"{where}.{key} must be a string, got {_shown(value)}")
    return value


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shown(value: Any) -> str:
    text = _compact(value)
    return text if len(text) <= 200 else text[:200] + "…"
