"""Texts of control tokens inside messages: a user, or the result of a tool, that has `<|im_end|>` could forge a turn.

    parse    they become control tokens, as in llama-server (the default)
    refuse   a request with one is an error
    escape   they are tokenized as plain text

All texts of a message count: its content, its reasoning, its calls with their arguments, and the names of tools.
Contents are rendered by a template into one text, so that escaping marks the places: each such text is replaced by a
private-use character before rendering, and the rendered prompt is cut there.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bankml.errors import RequestError
from bankml.text.messages import Message, content_text

ContentSpecial = Literal["parse", "refuse", "escape"]
CONTENT_SPECIAL: tuple[ContentSpecial, ...] = get_args(ContentSpecial)

FIRST_MARK, LAST_MARK = 0xF0000, 0xFFFFD
"""Supplementary private use area A: characters that no text has a meaning for."""


@dataclass(frozen=True)
class Segment:
    """A part of a prompt; `plain`: texts of control tokens in it stand for themselves."""

    text: str
    plain: bool = False


def refuse_special(messages: Sequence[Message], controls: Sequence[str]) -> None:
    """Raises RequestError for a message whose content has the text of a control token."""
    pattern = _pattern(controls)
    for i, message in enumerate(messages):
        for text in _texts(message):
            if found := pattern.search(text):
                what = "content" if found[0] in content_text(message) else "message"
                raise RequestError(
                    f"messages[{i}]: the {what} has the text of the control token '{found[0]}', which this server"
                    " refuses (--content-special)"
                )


def marked(messages: Sequence[Message], controls: Sequence[str]) -> tuple[list[Message], Mapping[str, str]]:
    """`messages` with a mark in place of each control token's text, and what each mark stands for. Raises RequestError
    for contents that use the marks themselves."""
    pattern, marks = _pattern(controls), {}
    by_text: dict[str, str] = {}
    for message in messages:
        for text in _texts(message):
            if any(FIRST_MARK <= ord(character) <= LAST_MARK for character in text):
                raise RequestError("a message has a private-use character from U+F0000 on, which cannot be escaped")
            for found in pattern.findall(text):
                mark = by_text.setdefault(found, chr(FIRST_MARK + len(by_text)))
                marks[mark] = found
    if not marks:
        return list(messages), {}
    return [_replaced(message, pattern, by_text) for message in messages], marks


def unmarked(text: str, marks: Mapping[str, str]) -> str:
    """`text` with the control tokens' texts put back."""
    return text.translate({ord(mark): original for mark, original in marks.items()})


def segments(text: str, marks: Mapping[str, str]) -> Iterator[Segment]:
    """A rendered prompt cut at its marks."""
    for part in re.split(f"([{''.join(marks)}])", text) if marks else [text]:
        if part:
            yield Segment(marks[part], plain=True) if part in marks else Segment(part)


def _pattern(controls: Sequence[str]) -> re.Pattern[str]:
    """The longest first: where one control token's text begins another's."""
    texts = sorted(filter(None, controls), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts)) if texts else r"(?!)")


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Every text of a message that a template may show; of a call's arguments also the strings inside the JSON, which a
    template may show without their escapes."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part["text"] for part in content)
    yield from (message[name] for name in _PLAIN if isinstance(message.get(name), str))
    for call in message.get("tool_calls", ()):
        yield from (call[name] for name in ("id",) if isinstance(call.get(name), str))
        yield call["function"]["name"]
        yield call["function"]["arguments"]
        yield from _strings(_json(call["function"]["arguments"]))


_PLAIN = ("reasoning_content", "name", "tool_call_id")

MOST_LEVELS = 128


def _json(text: str) -> Any:
    """The value of a JSON text, None for other texts."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strings(value: Any) -> Iterator[str]:
    """The strings in a JSON value, keys included. Raises RequestError for one that is nested too deeply."""
    level = [value]
    for _ in range(MOST_LEVELS):
        yield from (item for item in level if isinstance(item, str))
        objects = [item for item in level if isinstance(item, dict)]
        inside = [item for found in objects for item in (*found, *found.values())]
        level = [*inside, *(item for found in level if isinstance(found, list) for item in found)]
        if not level:
            return
    raise RequestError(f"the arguments of a tool call are nested deeper than {MOST_LEVELS} levels")


def _with_strings(value: Any, replace: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, list):
        return [_with_strings(item, replace) for item in value]
    if isinstance(value, dict):
        return {replace(key): _with_strings(item, replace) for key, item in value.items()}
    return value


def _replaced(message: Message, pattern: re.Pattern[str], marks: Mapping[str, str]) -> Message:
    def replace(text: str) -> str:
        return pattern.sub(lambda found: marks[found[0]], text)

    def arguments(text: str) -> str:
        """JSON is written again only where an escape hid a control token's text."""
        seen = replace(text)
        value = _json(seen)
        hidden = any(pattern.search(one) for one in _strings(value))
        return json.dumps(_with_strings(value, replace), ensure_ascii=False) if hidden else seen

    out = dict(message)
    if isinstance(out.get("content"), str):
        out["content"] = replace(out["content"])
    elif isinstance(out.get("content"), list):
        out["content"] = [{**part, "text": replace(part["text"])} for part in out["content"]]
    for name in _PLAIN:
        if isinstance(out.get(name), str):
            out[name] = replace(out[name])
    if "tool_calls" in out:
        out["tool_calls"] = [_replaced_call(call, replace, arguments) for call in out["tool_calls"]]
    return out


def _replaced_call(
    call: Mapping[str, Any], replace: Callable[[str], str], arguments: Callable[[str], str]
) -> dict[str, Any]:
    function = call["function"]
    out = {**call, "function": {"name": replace(function["name"]), "arguments": arguments(function["arguments"])}}
    return out | ({"id": replace(call["id"])} if isinstance(call.get("id"), str) else {})
