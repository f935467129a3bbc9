"""The arguments of filters, methods, tests and functions."""

from collections.abc import Callable
from typing import Any

from bankml.text.jinja.budget import RenderBudget, TemplateError
from bankml.text.jinja.values import Keyword, Undefined, Value, type_name

MOST = 999
Handler = Callable[[RenderBudget, list[Value]], Value]


def argument(arguments: list[Value], name: str, position: int) -> Value:
    """The argument given by name, else the one at `position` if that is not a named one."""
    for given in arguments:
        if isinstance(given, Keyword) and given.name == name and not isinstance(given.value, Undefined):
            return given.value
    if position < len(arguments) and not isinstance(arguments[position], Keyword):
        return arguments[position]
    return Undefined()


def counted(handler: Handler, name: str, least: int, most: int) -> Handler:
    """`handler` with its number of arguments checked."""

    def checked(budget: RenderBudget, arguments: list[Value]) -> Value:
        if not least <= len(arguments) <= most:
            raise TemplateError(f"'{name}' expected between {least} and {most} arguments, got {len(arguments)}")
        return handler(budget, arguments)

    return checked


def expect(value: Value, kind: type | tuple[type, ...], what: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TemplateError(f"{what} expected, got {type_name(value)}")
    return value


def string(value: Value) -> bytes:
    return expect(value, bytes, "a string")  # type: ignore[no-any-return]


def array(value: Value) -> Any:
    return expect(value, (list, tuple), "an array")
