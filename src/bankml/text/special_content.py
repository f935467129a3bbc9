"""Texts of control tokens inside the contents of messages: a user who writes `<|im_end|>` could forge a turn.

    parse    they become control tokens, as in llama-server (the default)
    refuse   a request with one is an error
    escape   they are tokenized as plain text

Contents are rendered by a template into one text, so that escaping marks the places: each such text is replaced by a
private-use character before rendering, and the rendered prompt is cut there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bankml.errors import RequestError
from bankml.text.messages import Message

ContentSpecial = Literal["parse", "refuse", "escape"]

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
                raise RequestError(
                    f"messages[{i}]: the content has the text of the control token '{found[0]}', which this server"
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
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part["text"] for part in content)
    if isinstance(thought := message.get("reasoning_content"), str):
        yield thought


def _replaced(message: Message, pattern: re.Pattern[str], marks: Mapping[str, str]) -> Message:
    def replace(text: str) -> str:
        return pattern.sub(lambda found: marks[found[0]], text)

    out = dict(message)
    if isinstance(out.get("content"), str):
        out["content"] = replace(out["content"])
    elif isinstance(out.get("content"), list):
        out["content"] = [{**part, "text": replace(part["text"])} for part in out["content"]]
    if isinstance(out.get("reasoning_content"), str):
        out["reasoning_content"] = replace(out["reasoning_content"])
    return out
