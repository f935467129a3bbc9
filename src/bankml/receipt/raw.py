"""Finds the source text of a value in JSON, which parsing and serializing again need not reproduce."""

import json
import re

SPACE = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()


def raw_value(text: str, path: tuple[str | int, ...]) -> str | None:
    """The source text of the value at `path` (keys and array positions) in `text`; None where there is none.

    `text` is valid JSON. The last value of a repeated key counts, as in the parser.
    """
    start, end = _skip(text, 0), len(text)
    for step in path:
        spans = _members(text, start) if isinstance(step, str) else _items(text, start)
        found = spans.get(step)
        if found is None:
            return None
        start, end = found
    return text[start:end].rstrip(" \t\n\r")


def raw_items(text: str) -> list[str]:
    """The source texts of the items of the array `text`, which is valid JSON."""
    return [text[start:end] for start, end in _items(text, _skip(text, 0)).values()]


def repeated_names(text: str) -> list[str]:
    """Names that an object in `text`, which is valid JSON, has more than once: parsers differ in which value counts."""
    found: list[str] = []

    def members(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        found.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)

    json.loads(text, object_pairs_hook=members)
    return found


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def _members(text: str, at: int) -> dict[str | int, tuple[int, int]]:
    """Start and end of each value of the object at `at`; empty when there is no object."""
    spans: dict[str | int, tuple[int, int]] = {}
    if text[at : at + 1] != "{":
        return spans
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = DECODER.raw_decode(text, _skip(text, at))
        start = _skip(text, _skip(text, at) + 1)  # past the colon
        _, end = DECODER.raw_decode(text, start)
        spans[key] = (start, end)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return spans


def _items(text: str, at: int) -> dict[str | int, tuple[int, int]]:
    """Start and end of each item of the array at `at`; empty when there is no array."""
    spans: dict[str | int, tuple[int, int]] = {}
    if text[at : at + 1] != "[":
        return spans
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = DECODER.raw_decode(text, at)
        spans[len(spans)] = (at, end)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return spans
