"""Reading a request's fields: each reader names the field, what is allowed and what came.

`null` is the same as leaving the field out, as in llama-server. A path such as `stream_options.include_usage` is
written as the client would write it.
"""

import json
from collections.abc import Mapping
from typing import Any

from bankml.api.json_in import kind
from bankml.errors import RequestError

INT32_MAX = 2**31 - 1


def refuse(path: str, why: str) -> RequestError:
    """The refusal of one field."""
    return RequestError(f"Field '{path}': {why}")


def shown(value: object) -> str:
    """`value` short and on one line, to stand in a sentence; never more than a glimpse of what a person wrote."""
    if isinstance(value, str):
        return json.dumps(value if len(value) <= 40 else value[:40] + "…", ensure_ascii=False)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else kind(value)


def boolean(body: Mapping[str, Any], name: str, default: bool, path: str | None = None) -> bool:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise refuse(path or name, f"expected true or false, but got {shown(value)}")
    return value


def integer(body: Mapping[str, Any], names: tuple[str, ...], default: int, least: int, most: int) -> int:
    """The first of `names` that is there; a fraction is cut off, as in llama-server, and the range is inclusive."""
    name = next((name for name in names if body.get(name) is not None), None)
    if name is None:
        return default
    value = body[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refuse(name, f"expected a number, but got {shown(value)}")
    number = int(value)
    if not least <= number <= most:
        got = number if abs(number) < 10**20 else value
        raise refuse(name, f"Value must be between {least} <= value <= {most}, but got {got}")
    return number


def string(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise refuse(name, f"expected a string, but got {shown(value)}")
    return value


def mapping(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refuse(name, f"expected an object, but got {shown(value)}")
    return value
