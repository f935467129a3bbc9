"""`tools` and `tool_choice` of a chat request, read as llama-server b11192 reads them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bankml.errors import RequestError

Choice = Literal["auto", "required", "none"]

FAILED = "Failed to parse tools: "


def read_tools(body: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]], Choice, str]:
    """The tools as templates see them, the choice, and the function that has to be called ("" for any). Raises
    RequestError, in llama-server's words where it has some.

    A choice that names a function requires a call of it; llama-server lets the model choose.
    """
    tools = _tools(body.get("tools"))
    choice, called = _choice(body.get("tool_choice", "auto"))
    if called and called not in [tool["function"]["name"] for tool in tools]:
        raise RequestError(f"Field 'tool_choice.function.name': there is no tool of the name {_shown(called)}")
    if tools and choice != "none" and "grammar" in body:
        raise RequestError("Cannot use custom grammar constraints with tools.")
    if tools and body.get("logprobs") is True and body.get("stream") is True:
        raise RequestError("logprobs is not supported with tools + stream")
    return tools, choice, called


def _tools(tools: object) -> list[Mapping[str, Any]]:
    if tools is None:
        return []
    if not isinstance(tools, list):
        raise RequestError(f"{FAILED}Expected 'tools' to be an array, got {_shown(tools)}")
    return [_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools)]


def _tool(tool: object, where: str) -> Mapping[str, Any]:
    """Name, description and parameters; `strict` and the like are left out, as in llama-server."""
    if not isinstance(tool, dict) or "type" not in tool:
        raise RequestError(f"{FAILED}Missing tool type: {_shown(tool)}")
    if tool["type"] != "function":
        raise RequestError(f"{FAILED}Unsupported tool type: {_shown(tool)}")
    function = tool.get("function")
    if "function" not in tool:
        raise RequestError(f"{FAILED}Missing tool function: {_shown(tool)}")
    if not isinstance(function, dict):
        raise RequestError(f"{FAILED}{where}.function must be an object, got {_shown(function)}")
    name, description = function.get("name"), function.get("description", "")
    if not isinstance(name, str):
        problem = "is missing" if "name" not in function else f"must be a string, got {_shown(name)}"
        raise RequestError(f"{FAILED}{where}.function.name {problem}")
    if not isinstance(description, str):
        raise RequestError(f"{FAILED}{where}.function.description must be a string, got {_shown(description)}")
    parameters = function.get("parameters", {})
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _choice(choice: object) -> tuple[Choice, str]:
    if isinstance(choice, str):
        if choice not in ("auto", "required", "none"):
            raise RequestError(f"Invalid tool_choice: {choice}")
        return choice, ""  # type: ignore[return-value]
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return ("required", name) if isinstance(name, str) and name else ("auto", "")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 200 else text[:200] + "…"
