"""The body of `POST /v1/messages`, as the body of a chat request, read as llama-server b11192 reads it.

Every sampling field of a chat counts here too; llama-server drops all but temperature, top_p and top_k. What the API
has and a chat cannot do is refused by name.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bankml.api.reading import fields
from bankml.api.reading.generation import Unsupported, chat_request, refuse_unsupported
from bankml.api.reading.json_body import read_object
from bankml.errors import RequestError
from bankml.library.request import GenerationRequest
from bankml.text.answer import compact_json

Body = Mapping[str, Any]
Message = dict[str, Any]

DEFAULT_MAX_TOKENS = 4096
UNSUPPORTED: Unsupported = {
    "container": ((), "there are no containers"),
    "mcp_servers": (([],), "MCP servers are not called: pass their tools in 'tools'"),
    "logprobs": ((False,), "probabilities are reported on /v1/chat/completions"),
    "n_probs": ((0,), "probabilities are reported on /v1/chat/completions"),
    "top_logprobs": ((0,), "probabilities are reported on /v1/chat/completions"),
}
OWN = (
    "system", "messages", "tools", "tool_choice", "stop_sequences", "max_tokens", "thinking", "metadata",
    "service_tier", "context_management", "cache_prompt",
)  # fmt: skip
"""Fields that a chat has by another name, in another form or not at all. The prompt cache is always used, as there."""

BILLING_HEADER = re.compile(r"(x-anthropic-billing-header:.*?cch=).{5}(?=;)", re.DOTALL)
"""A line of Claude Code's system prompt that differs with each request; its hash is made constant, as there, so that
the prompt is found in the cache."""


def read_messages_request(data: bytes) -> GenerationRequest:
    """Reads the body of `POST /v1/messages`. Raises RequestError with one sentence."""
    body = read_object(data)
    request = chat_request(chat_body(body))
    left_out = ("context_management",) if body.get("context_management") else ()
    return replace(request, response=replace(request.response, left_out=(*request.response.left_out, *left_out)))


def chat_body(body: Body) -> dict[str, Any]:
    """The body of a chat request that asks the same. Raises RequestError."""
    if "messages" not in body:
        raise RequestError("'messages' is required")
    refuse_unsupported(body, UNSUPPORTED)
    chat = {name: value for name, value in body.items() if name not in (*OWN, *UNSUPPORTED)}
    fields.mapping(body, "metadata")
    chat["messages"] = [*_system(body.get("system")), *_messages(body["messages"])]
    if tools := _tools(body.get("tools")):
        chat["tools"] = tools
    chat |= _tool_choice(fields.mapping(body, "tool_choice"), {tool["function"]["name"] for tool in tools})
    if body.get("stop_sequences") is not None:
        if not isinstance(body["stop_sequences"], list):
            got = fields.shown(body["stop_sequences"])
            raise fields.refuse("stop_sequences", f"expected an array of strings, but got {got}")
        chat["stop"] = body["stop_sequences"]
    chat["max_tokens"] = fields.integer(body, ("max_tokens",), DEFAULT_MAX_TOKENS, -1, fields.INT32_MAX)
    return chat | _thinking(fields.mapping(body, "thinking"), chat.get("chat_template_kwargs"))


def _thinking(thinking: Body, arguments: Any) -> dict[str, Any]:
    """`enabled` with a budget, `disabled`, or `adaptive`, which leaves it to the model."""
    kind = thinking.get("type")
    if kind not in (None, "enabled", "disabled", "adaptive"):
        got = fields.shown(kind)
        raise fields.refuse("thinking.type", f'expected "enabled", "disabled" or "adaptive", but got {got}')
    if kind in (None, "adaptive"):
        return {}
    asked: dict[str, Any] = {"enable_thinking": kind == "enabled"}
    out: dict[str, Any] = {"chat_template_kwargs": {**arguments, **asked} if isinstance(arguments, dict) else asked}
    if kind == "enabled":
        budget = fields.integer(thinking, ("budget_tokens",), 10000, -1, fields.INT32_MAX)
        out["thinking_budget_tokens"] = budget
    return out


# ---- tools


def _tools(tools: object) -> list[dict[str, Any]]:
    if tools is None:
        return []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise RequestError("'tools' must be an array of objects")
    return [_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools)]


def _tool(tool: Body, path: str) -> dict[str, Any]:
    if tool.get("type") not in (None, "custom"):
        raise fields.refuse(f"{path}.type", f"only tools of the client are supported, not {fields.shown(tool['type'])}")
    name = tool.get("name")
    if not isinstance(name, str):
        raise fields.refuse(f"{path}.name", f"expected a string, but got {fields.shown(name)}")
    function = {"name": name, "description": tool.get("description") or "", "parameters": tool.get("input_schema", {})}
    return {"type": "function", "function": function}


def _tool_choice(choice: Body, names: set[str]) -> dict[str, Any]:
    """`tool` requires a call of the tool that it names; where there is none of this name, of any, as there."""
    kind, name = choice.get("type"), choice.get("name")
    known: dict[Any, Any] = {None: None, "auto": "auto", "any": "required", "tool": "required", "none": "none"}
    if not isinstance(kind, str | None) or kind not in known:
        got = fields.shown(kind)
        raise fields.refuse("tool_choice.type", f'expected "auto", "any", "tool" or "none", but got {got}')
    out: dict[str, Any] = {} if kind is None else {"tool_choice": known[kind]}
    if kind == "tool" and isinstance(name, str) and name in names:
        out["tool_choice"] = {"type": "function", "function": {"name": name}}
    if fields.boolean(choice, "disable_parallel_tool_use", False, "tool_choice.disable_parallel_tool_use"):
        out["parallel_tool_calls"] = False
    return out


# ---- messages


def _system(system: object) -> list[Message]:
    if system is None:
        return []
    if isinstance(system, str):
        text = _without_hash(system)
    elif isinstance(system, list):
        text = "".join(_without_hash(_block_text(block, f"system[{i}]")) for i, block in enumerate(system))
    else:
        raise fields.refuse("system", f"expected a string or an array of text blocks, but got {fields.shown(system)}")
    return [{"role": "system", "content": text}]


def _without_hash(text: str) -> str:
    return BILLING_HEADER.sub(r"\1fffff", text, count=1) if text.startswith("x-anthropic-billing-header:") else text


def _block_text(block: Any, path: str) -> str:
    if not isinstance(block, dict) or block.get("type") != "text":
        raise fields.refuse(path, "expected a block of type text")
    if not isinstance(block.get("text"), str):
        raise fields.refuse(f"{path}.text", f"expected a string, but got {fields.shown(block.get('text'))}")
    return str(block["text"])


def _messages(messages: object) -> list[Message]:
    if not isinstance(messages, list):
        raise RequestError("Expected 'messages' to be an array")
    read: list[Message] = []
    for i, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            read += _message(message, content, f"messages[{i}]")
        elif not isinstance(message, dict) or "content" in message or message.get("role") != "assistant":
            read.append(message)
    return read


def _message(message: Body, blocks: list[Any], path: str) -> list[Message]:
    """A message in blocks: what was said, then the results of tools, each a message of its own."""
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    results: list[Message] = []
    thoughts = ""
    for i, block in enumerate(blocks):
        where = f"{path}.content[{i}]"
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            parts.append({"type": "text", "text": _block_text(block, where)})
        elif kind == "image":
            parts.append({"type": "image_url"})  # refused with the words of a chat
        elif kind == "thinking":
            thoughts += fields.string(block, "thinking") or ""
        elif kind == "tool_use":
            calls.append(_call(block, where))
        elif kind == "tool_result":
            content = _result(block.get("content"), where)
            results.append({"role": "tool", "tool_call_id": block.get("tool_use_id") or "", "content": content})
        elif kind != "redacted_thinking":
            known = "text, thinking, tool_use, tool_result"
            raise fields.refuse(f"{where}.type", f"expected one of {known}, but got {fields.shown(kind)}")
    said: Message = {"role": message.get("role"), "content": parts or ""}
    said |= {"tool_calls": calls} if calls else {}
    said |= {"reasoning_content": thoughts} if thoughts else {}
    return [*([said] if parts or calls or thoughts else []), *results]


def _call(block: Body, path: str) -> dict[str, Any]:
    name, given = block.get("name"), block.get("input", {})
    if not isinstance(name, str):
        raise fields.refuse(f"{path}.name", f"expected a string, but got {fields.shown(name)}")
    if not isinstance(given, dict):
        raise fields.refuse(f"{path}.input", f"expected an object, but got {fields.shown(given)}")
    call = {"type": "function", "function": {"name": name, "arguments": compact_json(given)}}
    return call | {"id": block.get("id") or ""}


def _result(content: Any, path: str) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise fields.refuse(f"{path}.content", f"expected a string or an array, but got {fields.shown(content)}")
    if any(isinstance(part, dict) and part.get("type") == "image" for part in content):
        return [{"type": "image_url"}]
    return "".join(_block_text(part, f"{path}.content[{i}]") for i, part in enumerate(content))
