"""The functions a template may call by name, and the `loop` variable."""

import re
import time
from collections.abc import Callable

from bankml.text.jinja.arguments import expect, string
from bankml.text.jinja.budget import RenderBudget, TemplateError
from bankml.text.jinja.general import tojson
from bankml.text.jinja.values import Function, Keyword, Loop, Scope, Undefined, Value


def functions(budget: RenderBudget, now: float) -> dict[str, Function]:
    """By name; `now` is the time for `strftime_now`, in seconds since the epoch."""
    named: dict[str, Callable[[list[Value]], Value]] = {
        "raise_exception": _raise,
        "namespace": _namespace,
        "strftime_now": lambda arguments: _strftime(arguments, now),
        "range": lambda arguments: _range(arguments, budget),
        "tojson": lambda arguments: _tojson(arguments, budget),
    }
    return {name: Function(name, _without_scope(call)) for name, call in named.items()}


def _without_scope(call: Callable[[list[Value]], Value]) -> Callable[[list[Value], Scope], Value]:
    return lambda arguments, _scope: call(arguments)


def _raise(arguments: list[Value]) -> Value:
    message = string(arguments[0] if arguments else Undefined()).decode("utf-8", "replace")
    raise TemplateError(f"Jinja Exception: {message}")


def _namespace(arguments: list[Value]) -> Value:
    if not all(isinstance(given, Keyword) for given in arguments):
        raise TemplateError("namespace() arguments must be named")
    return {given.name.encode(): given.value for given in arguments}


def _strftime(arguments: list[Value], now: float) -> Value:
    pattern = string(arguments[0] if arguments else Undefined()).decode("utf-8", "replace")
    # A width could ask for any length; the reference's buffer holds 99 bytes.
    if len(pattern) > 100 or re.search(r"%[-_0^#+]*\d|\0", pattern):
        raise TemplateError("strftime_now: failed to format time")
    text = time.strftime(pattern, time.localtime(now)).encode("utf-8", "replace")
    if not 0 < len(text) < 100:
        raise TemplateError("strftime_now: failed to format time")
    return text


def _range(arguments: list[Value], budget: RenderBudget) -> Value:
    if not 1 <= len(arguments) <= 3:
        raise TemplateError("range() takes one to three arguments")
    start, stop, step = 0, expect(arguments[0], int, "an integer"), 1
    if len(arguments) > 1:
        start, stop = stop, expect(arguments[1], int, "an integer")
    if len(arguments) > 2:
        step = expect(arguments[2], int, "an integer")
    if step == 0:
        raise TemplateError("range() step argument must not be zero")
    budget.step(max((stop - start) // step, 0))
    return list(range(start, stop, step))


def _tojson(arguments: list[Value], budget: RenderBudget) -> Value:
    if not arguments:
        raise TemplateError("tojson() takes at least one argument")
    return tojson(budget, arguments)


def loop_variable(items: list[Value], i: int) -> Loop:
    n = len(items)
    return Loop(
        {
            b"index": i + 1,
            b"index0": i,
            b"revindex": n - i,
            b"revindex0": n - i - 1,
            b"first": i == 0,
            b"last": i == n - 1,
            b"length": n,
            b"previtem": items[i - 1] if i else Undefined("previtem"),
            b"nextitem": items[i + 1] if i + 1 < n else Undefined("nextitem"),
        }
    )
