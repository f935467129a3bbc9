"""A conversation, and its messages adapted to what a chat template supports."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bankml.errors import RequestError
from bankml.text.capabilities import Capabilities

Message = dict[str, Any]
"""A message as a template sees it: `role`, `content` (a string, or a list of {"type": "text", "text"}), and where they
are not empty `reasoning_content`, `name`, `tool_call_id`, `tool_calls`, in this order."""

Continuation = Literal["", "content", "reasoning"]


@dataclass(frozen=True)
class Conversation:
    """What a chat prompt is rendered from.

    `continues` is the part of the last message that the answer continues, "" for none. `template_arguments` are JSON
    values that the template sees by name (`chat_template_kwargs`, `reasoning_effort`). `reasoning_format` is the field
    of that name, "" when it was not sent. `enable_thinking` None leaves the switch to the server.
    `tools` are OpenAI's objects of functions, `called` is the one that a required call is of, "" for any;
    `parallel_tool_calls` None leaves to the template whether an answer may have several. `repeats`: the beginning of a
    continued answer is part of a streamed answer. `now` is what templates see as the present, in seconds since the
    epoch; None: the moment at which it is rendered.
    """

    messages: Sequence[Message]
    add_generation_prompt: bool = True
    continues: Continuation = ""
    enable_thinking: bool | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Mapping[str, Any]] = ()
    reasoning_format: str = ""
    tool_choice: Literal["auto", "required", "none"] = "auto"
    called: str = ""
    parallel_tool_calls: bool | None = None
    repeats: bool = True
    now: float | None = None

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "Conversation":
        """The conversation of `messages`: an assistant message at the end is continued. Raises RequestError."""
        continues = continuation(messages)
        return cls(messages, add_generation_prompt=not continues, continues=continues)


def continuation(messages: Sequence[Message]) -> Continuation:
    """What an answer to `messages` continues: an assistant message at their end. Raises RequestError for two."""
    last = messages[-1]
    if last["role"] != "assistant":
        return ""
    if len(messages) >= 2 and messages[-2]["role"] == "assistant":
        raise RequestError("Cannot have 2 or more assistant messages at the end of the list.")
    return continued_part(last)


def continued_part(message: Message) -> Continuation:
    """The part of a message that is continued: its reasoning if it has nothing else, else its content."""
    return "reasoning" if "reasoning_content" in message and not message["content"] else "content"


def content_text(message: Message) -> str:
    """The text of a message's content: the beginning of an answer that continues the message."""
    content = message["content"]
    return content if isinstance(content, str) else "\n\n".join(_joined(content))


def is_empty(message: Message) -> bool:
    return not any(value for key, value in message.items() if key != "role")


def with_fitting_content(messages: Sequence[Mapping[str, Any]], template: Capabilities) -> list[Message]:
    """`messages` with lists of parts joined to one string, or strings made a part, if the template supports only
    that."""
    return [_fitting(dict(message), template) for message in messages]


def adapted(messages: Sequence[Message], source: str, template: Capabilities) -> list[Message]:
    """`messages` as the template of this `source` supports them. Raises RequestError if that is impossible."""
    trim = "You have access to the following functions in JSONSchema format" in source
    out = with_fitting_content([_trimmed(message) for message in messages] if trim else messages, template)
    if "<|channel|>" not in source:
        out = [message | {"role": "system"} if message["role"] == "developer" else message for message in out]
    if not template.system_role and out and out[0]["role"] == "system":
        out = _without_system(out)
    if template.object_arguments:
        for message in out:
            if "tool_calls" in message:
                message["tool_calls"] = [_with_object_arguments(call) for call in message["tool_calls"]]
    return out


def _fitting(message: Message, template: Capabilities) -> Message:
    content = message.get("content")
    if template.string_content and not template.typed_content and isinstance(content, list):
        message["content"] = "\n".join(_joined(content))
    elif template.typed_content and not template.string_content and isinstance(content, str):
        message["content"] = [{"type": "text", "text": content}]
    return message


def _joined(parts: Sequence[Mapping[str, str]]) -> list[str]:
    """The texts to join; no separator precedes the first non-empty one."""
    texts = [part["text"] for part in parts]
    while len(texts) > 1 and not texts[0]:
        texts.pop(0)
    return texts


def _with_object_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    try:
        function["arguments"] = json.loads(function["arguments"])
    except (ValueError, RecursionError) as error:
        raise RequestError(f"Failed to parse tool call arguments as JSON: {error}") from None
    return {**call, "function": function}


def _without_system(messages: list[Message]) -> list[Message]:
    """The system message prepended to the next one, or dropped if there is none."""
    if len(messages) == 1:
        return []
    system, following = messages[0], messages[1]
    if not isinstance(system["content"], str) or not isinstance(following["content"], str):
        raise RequestError("the chat template has no system role, and messages in parts cannot be joined")
    return [following | {"content": system["content"] + "\n" + following["content"]}, *messages[2:]]


_WHITE_SPACE = " \t\n\v\f\r"


def _trimmed(message: Message) -> Message:
    out = dict(message)
    if isinstance(out["content"], str):
        out["content"] = out["content"].strip(_WHITE_SPACE)
    else:
        out["content"] = [part | {"text": part["text"].strip(_WHITE_SPACE)} for part in out["content"]]
    reasoning = out.pop("reasoning_content", "").strip(_WHITE_SPACE)
    if not reasoning:
        return out
    return {"role": out.pop("role"), "content": out.pop("content"), "reasoning_content": reasoning, **out}
