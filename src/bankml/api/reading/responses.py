"""The body of `POST /v1/responses`, as the body of a chat request, read as llama-server b11192 reads it.

What the API has and a chat cannot do is refused by name. Tools that are no functions are left out, as there, and the
response says so in a `Warning` header.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bankml.api.reading import fields
from bankml.api.reading.generation import Unsupported, chat_request, refuse_unsupported
from bankml.api.reading.json_body import read_object
from bankml.errors import RequestError
from bankml.library.request import GenerationRequest

Body = Mapping[str, Any]
Message = dict[str, Any]

UNSUPPORTED: Unsupported = {
    "background": ((False,), "responses are not kept: they are sent when they are asked for"),
    "conversation": ((), "conversations are not kept: send all of it in 'input'"),
    "max_tool_calls": ((), "the number of tool calls is not limited"),
    "prompt": ((), "prompts are not kept: send it in 'input'"),
    "truncation": (("disabled",), "a conversation that does not fit the context is refused"),
    "logprobs": ((False,), "probabilities are reported on /v1/chat/completions"),
    "n_probs": ((0,), "probabilities are reported on /v1/chat/completions"),
    "top_logprobs": ((0,), "probabilities are reported on /v1/chat/completions"),
}
OWN = ("input", "instructions", "tools", "tool_choice", "max_output_tokens", "reasoning", "text", "include")
"""Fields that a chat has by another name or in another form."""


def read_responses(data: bytes) -> GenerationRequest:
    """Reads the body of `POST /v1/responses`. Raises RequestError with one sentence."""
    body = read_object(data)
    chat, left_out = chat_body(body)
    request = chat_request(chat)
    return replace(request, response=replace(request.response, left_out=(*request.response.left_out, *left_out)))


def chat_body(body: Body) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The body of a chat request that asks the same, and what it leaves out. Raises RequestError."""
    if "input" not in body:
        raise RequestError("'input' is required")
    if fields.string(body, "previous_response_id"):
        raise RequestError("llama.cpp does not support 'previous_response_id'.")
    refuse_unsupported(body, UNSUPPORTED)
    _check_include(body.get("include"))
    chat = {name: value for name, value in body.items() if name not in (*OWN, *UNSUPPORTED)}
    instructions = fields.string(body, "instructions")
    first = [{"role": "system", "content": instructions}] if instructions is not None else []
    chat["messages"] = [*first, *_messages(body["input"])]
    tools, left_out = _tools(body.get("tools"))
    if tools:
        chat["tools"] = tools
    if body.get("tool_choice") is not None:
        chat["tool_choice"] = _tool_choice(body["tool_choice"])
    if body.get("max_output_tokens") is not None:
        chat["max_tokens"] = fields.integer(body, ("max_output_tokens",), -1, -1, fields.INT32_MAX)
    effort = fields.string(fields.mapping(body, "reasoning"), "effort")
    if effort is not None:
        chat["reasoning_effort"] = effort
    if (wanted := _response_format(fields.mapping(body, "text"))) is not None:
        chat["response_format"] = wanted
    return chat, left_out


def _check_include(include: object) -> None:
    """What else a response may have; the text's probabilities are what would be missed."""
    if include is not None and not (isinstance(include, list) and all(isinstance(one, str) for one in include)):
        raise fields.refuse("include", f"expected an array of strings, but got {fields.shown(include)}")
    if "message.output_text.logprobs" in (include or ()):
        raise fields.refuse("include", "probabilities are reported on /v1/chat/completions")


def _response_format(text: Body) -> Any:
    verbosity = text.get("verbosity")
    if verbosity not in (None, "medium"):
        raise fields.refuse("text.verbosity", f'only "medium" is supported, but got {fields.shown(verbosity)}')
    wanted = text.get("format")
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return wanted
    return {"type": "json_schema", "json_schema": {name: one for name, one in wanted.items() if name != "type"}}


# ---- tools


def _tools(tools: object) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    if tools is None:
        return [], ()
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise RequestError("'tools' must be an array of objects")
    functions = [
        {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}
        for tool in tools
        if tool.get("type") == "function"
    ]
    left_out = [f"tools[{i}]" for i, tool in enumerate(tools) if tool.get("type") != "function"]
    return functions, tuple(left_out)


def _tool_choice(choice: object) -> object:
    """A function by its name as a chat's choice; an object that names none is refused."""
    if isinstance(choice, str):
        return choice
    if isinstance(choice, dict) and choice.get("type") == "function" and isinstance(choice.get("name"), str):
        return {"type": "function", "function": {"name": choice["name"]}}
    raise fields.refuse(
        "tool_choice", 'expected "auto", "none", "required" or a function, {"type": "function", "name": NAME}'
    )


# ---- input


def _messages(given: object) -> list[Message]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise RequestError("'input' must be a string or array of objects")
    messages: list[Message] = []
    for item in given:
        _add_item(messages, item)
    return messages


def _add_item(messages: list[Message], item: Any) -> None:
    if not isinstance(item, dict):
        raise RequestError("'input' must be a string or array of objects")
    kind, role = item.get("type"), item.get("role")
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    if role in ("user", "system", "developer") and isinstance(content, list):
        messages.append({"role": role, "content": [_input_part(part) for part in content]})
    elif role == "assistant" and kind in (None, "message") and isinstance(content, list):
        _said(messages)["content"] += [_output_part(part) for part in content]
    elif kind == "function_call" and _has_texts(item, "arguments", "call_id", "name"):
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"type": "function", "id": item["call_id"], "function": function}
        _said(messages).setdefault("tool_calls", []).append(call)
    elif kind == "function_call_output" and _has_texts(item, "call_id") and isinstance(item.get("output"), str | list):
        output = item["output"]
        output = output if isinstance(output, str) else [_tool_output(part) for part in output]
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": output})
    elif kind == "reasoning" and isinstance(item.get("summary"), list):
        _said(messages)["reasoning_content"] = _reasoning(content)
    else:
        raise RequestError("Cannot determine type of 'item'")


def _said(messages: list[Message]) -> Message:
    """The assistant's message that an item belongs to: the last one, or a new one."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": []})
    return messages[-1]


def _has_texts(item: Body, *names: str) -> bool:
    return all(isinstance(item.get(name), str) for name in names)


def _input_part(part: Any) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "input_text":
        if "text" not in part:
            raise RequestError("'Input text' requires 'text'")
        return {"type": "text", "text": part["text"]}
    if kind == "input_image":
        return {"type": "image_url"}  # refused with the words of a chat
    if kind == "input_file":
        raise RequestError("'input_file' is not supported by llamacpp at this moment")
    raise RequestError("'type' must be one of 'input_text', 'input_image', or 'input_file'")


def _output_part(part: Any) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("output_text", "input_text"):
        if not isinstance(part.get("text"), str):
            raise RequestError("'Output text' requires 'text'")
        return {"type": "text", "text": part["text"]}
    if kind == "refusal":
        if not isinstance(part.get("refusal"), str):
            raise RequestError("'Refusal' requires 'refusal'")
        return {"type": "text", "text": part["refusal"]}
    raise RequestError("'type' must be one of 'output_text' or 'refusal'")


def _tool_output(part: Any) -> dict[str, Any]:
    if not isinstance(part, dict) or "type" not in part:
        raise RequestError("Output of tool call missing 'type' field")
    if part["type"] not in ("input_text", "input_image"):
        raise RequestError("Output of tool call should be 'Input text' or 'Input image'")
    return _input_part(part)


def _reasoning(content: Any) -> str:
    if not isinstance(content, list):
        raise RequestError("item['content'] is not an array")
    if not content:
        raise RequestError("item['content'] is empty")
    if not isinstance(content[0], dict) or not isinstance(content[0].get("text"), str):
        raise RequestError("item['content']['text'] is not a string")
    return str(content[0]["text"])
