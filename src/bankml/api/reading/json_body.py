"""JSON as it comes in: strict, of bounded depth, and never a surprise further on.

The parser is the standard library's, with these rules on top: UTF-8 without a byte order mark; of a repeated key the
last value counts; no NaN or Infinity and no number beyond a double; an escaped surrogate without its partner becomes
U+FFFD; at most MAX_DEPTH levels.
"""

import json
import math
import re
from typing import Any, NoReturn

from bankml.errors import RequestError

MAX_DEPTH = 128
"""Levels of arrays and objects; 128 pass, 129 do not."""

MAX_INTEGER_DIGITS = 20
"""An integer of more characters is read as a float, as it is outside 64 bits anyway."""

SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def kind(value: object) -> str:
    """What a JSON value is, in a reader's words."""
    return KINDS.get(type(value), "null")


def read_json(body: bytes) -> Any:
    """The JSON value of a request's body. Raises RequestError with one sentence."""
    if not body.strip():
        raise RequestError("the body is empty; send a JSON object")
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if body.startswith(mark):
            raise RequestError(f"the body begins with a {encoding} byte order mark; send plain UTF-8 without one")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"the body is not UTF-8: byte {error.start} cannot be read") from None
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=_integer)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise RequestError(f"the body is not JSON: {what} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _too_deep() from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    return _without_surrogates(value) if SURROGATE_ESCAPE.search(body) else value


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body. Raises RequestError with one sentence."""
    value = read_json(body)
    if not isinstance(value, dict):
        raise RequestError(f"the body must be a JSON object, but it is {kind(value)}")
    return value


def _constant(text: str) -> NoReturn:
    raise RequestError(f"the body is not JSON: {text} is not a number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise RequestError(f"the number {shown} is out of range")
    return value


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else _float(text)


def _too_deep() -> RequestError:
    return RequestError(f"the body's arrays and objects are nested deeper than {MAX_DEPTH} levels")


def _check_depth(value: Any) -> None:
    """Level by level, so that what is checked cannot make the check itself run deep."""
    level = [value] if isinstance(value, (list, dict)) else []
    for _ in range(MAX_DEPTH):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [part for parts in inside for part in parts if isinstance(part, (list, dict))]
    if level:
        raise _too_deep()


def _without_surrogates(value: Any) -> Any:
    """`value` with U+FFFD for each lone surrogate in its texts and keys. Its depth has been checked."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _whole(text: str) -> str:
    """The parser has joined every pair already, so each surrogate that is left stands alone."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text
