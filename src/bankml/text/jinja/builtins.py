"""Filters and methods (one set: `x|trim` and `x.strip()` are the same), by the type of their subject.

A handler takes the budget and its arguments, the subject first. Only what llama.cpp has is supported.
"""

import functools
from collections.abc import Callable
from typing import Any

from bankml.text.jinja.arguments import MOST, Handler, argument, array, counted, expect, string
from bankml.text.jinja.budget import RenderBudget, TemplateError
from bankml.text.jinja.general import default, length, not_implemented, number_text, slice_of, text_of, tojson
from bankml.text.jinja.strings import STRING
from bankml.text.jinja.tests import TESTS
from bankml.text.jinja.values import (
    Function,
    Keyword,
    Loop,
    Undefined,
    Value,
    as_text,
    compare,
    fitting,
    is_array,
    is_int,
    is_number,
    truth,
    type_name,
)

# Arrays


def _same_kind(original: Value, items: list[Value]) -> Value:
    return tuple(items) if isinstance(original, tuple) else items


def _list(budget: RenderBudget, a: list[Value]) -> Value:
    budget.step(len(array(a[0])))
    return list(a[0])


def _first(budget: RenderBudget, a: list[Value]) -> Value:
    return array(a[0])[0] if a[0] else Undefined()


def _last(budget: RenderBudget, a: list[Value]) -> Value:
    return array(a[0])[-1] if a[0] else Undefined()


def _select(reject: bool) -> Handler:
    def handler(budget: RenderBudget, a: list[Value]) -> Value:
        items, name = array(a[0]), string(a[1])
        test, extra = None, a[-1]
        if len(a) > 2:
            called = string(a[1] if len(a) == 3 else a[2]).decode("utf-8", "replace")
            test = TESTS.get(called)
            if test is None:
                raise TemplateError(f"selectattr: unknown test '{called}'")
        chosen = []
        for item in items:
            budget.step()
            subject = item if len(a) == 3 else expect(item, dict, "an object").get(name, Undefined())
            if (test(budget, [subject, extra]) if test else truth(subject)) != reject:
                chosen.append(item)
        return chosen

    return handler


def _attribute(item: Value, attribute: Value, missing: Value) -> Value:
    """`item[attribute]`: by index of an array, by name of an object; None otherwise."""
    if is_int(attribute) and is_array(item):
        return item[attribute] if -len(item) <= attribute < len(item) else missing
    if isinstance(attribute, bytes) and isinstance(item, dict):
        return item.get(attribute, missing)
    return None


def _join(budget: RenderBudget, a: list[Value]) -> Value:
    delimiter, attribute = argument(a, "d", 1), argument(a, "attribute", 2)
    between = b"" if isinstance(delimiter, Undefined) else as_text(delimiter, budget)
    out = []
    for given in array(a[0]):
        budget.step()
        item = given
        if not isinstance(attribute, Undefined):
            found = _attribute(given, attribute, Undefined())
            item = given if found is None else found
        if not isinstance(item, bytes) and not is_number(item):
            raise TemplateError("join() can only join arrays of strings or numerics")
        text = as_text(item, budget)
        budget.text(len(text) + len(between))
        out.append(text)
    return between.join(out)


def _array_text(budget: RenderBudget, a: list[Value]) -> Value:
    return as_text(a[0], budget)


def _map(budget: RenderBudget, a: list[Value]) -> Value:
    items = array(a[0])
    if not isinstance(a[1], Keyword):
        raise TemplateError("map: filter-mapping is not implemented")
    attribute = argument(a, "attribute", 1)
    if not isinstance(attribute, bytes) and not is_int(attribute):
        raise TemplateError("map: attribute must be string or integer")
    missing = next((k.value for k in a if isinstance(k, Keyword) and k.name == "default"), Undefined())
    budget.step(len(items))
    found = [_attribute(item, attribute, missing) if _fits(item, attribute) else missing for item in items]
    return _same_kind(items, found)


def _fits(item: Value, attribute: Value) -> bool:
    return is_array(item) if is_int(attribute) else isinstance(item, dict)


def _append(budget: RenderBudget, a: list[Value]) -> Value:
    expect(a[0], list, "append: an array").append(a[1])
    return a[0]


def _pop(budget: RenderBudget, a: list[Value]) -> Value:
    items, index = expect(a[0], list, "pop: an array"), expect(a[1], int, "an integer") if len(a) > 1 else -1
    if not -len(items) <= index < len(items):
        raise TemplateError(f"Index {index} out of bounds for array of size {len(items)}")
    budget.step(1 + len(items) // 64)
    return items.pop(index)


def _sort(budget: RenderBudget, a: list[Value]) -> Value:
    items, reverse, attribute = array(a[0]), truth(argument(a, "reverse", 1)), argument(a, "attribute", 3)

    def key(item: Value) -> Value:
        if isinstance(attribute, Undefined):
            return item
        if not _fits(item, attribute):
            raise TemplateError(f"sort: unsupported attribute of {type_name(item)}")
        found = _attribute(item, attribute, None)
        if found is None:
            raise TemplateError("sort: an item has no such attribute")
        return found

    budget.step(4 * len(items))
    return _same_kind(items, sorted(items, key=lambda item: _by_order(reverse, budget)(key(item))))


def _by_order(reverse: bool, budget: RenderBudget) -> Callable[[Value], Any]:
    relation = "gt" if reverse else "lt"

    def order(left: Value, right: Value) -> int:
        return -1 if compare(left, right, relation, budget) else int(compare(right, left, relation, budget))

    return functools.cmp_to_key(order)


def _reverse(budget: RenderBudget, a: list[Value]) -> Value:
    budget.step(len(array(a[0])))
    return _same_kind(a[0], list(reversed(a[0])))


def _extreme(relation: str) -> Handler:
    def handler(budget: RenderBudget, a: list[Value]) -> Value:
        if not isinstance(argument(a, "attribute", 2), Undefined):
            raise TemplateError("min and max: attribute is not implemented")
        items = array(a[0])
        best: Value = items[0] if items else Undefined()
        for item in items[1:]:
            best = item if compare(item, best, relation, budget) else best
        return best

    return handler


# Objects


def _get(budget: RenderBudget, a: list[Value]) -> Value:
    return expect(a[0], dict, "get: an object").get(string(a[1]), a[2] if len(a) == 3 else None)


def _of_object(parts: Callable[[dict[Any, Value]], list[Value]]) -> Handler:
    def handler(budget: RenderBudget, a: list[Value]) -> Value:
        budget.step(len(expect(a[0], dict, "an object")))
        return parts(a[0])

    return handler


def _dictsort(budget: RenderBudget, a: list[Value]) -> Value:
    place = 1 if argument(a, "by", 2) == b"value" else 0
    order = _by_order(truth(argument(a, "reverse", 3)), budget)
    budget.step(4 * len(a[0]))
    return dict(sorted(a[0].items(), key=lambda pair: order(pair[place])))


_NUMBER: dict[str, Handler] = {
    "default": counted(default, "default", 2, 3),
    "abs": lambda budget, a: fitting(abs(a[0])),
    "int": lambda budget, a: _whole(a[0]),
    "float": lambda budget, a: float(a[0]),
    "safe": number_text,
    "string": number_text,
    "tojson": tojson,
}


def _whole(number: float) -> int:
    try:
        return int(fitting(int(number)))
    except (OverflowError, ValueError):
        raise TemplateError(f"{number} has no integer") from None


_BOOLEAN: dict[str, Handler] = {
    "default": counted(default, "default", 2, 3),
    "int": lambda budget, a: int(a[0]),
    "float": lambda budget, a: float(a[0]),
    "safe": text_of,
    "string": text_of,
    "tojson": tojson,
}
_ARRAY: dict[str, Handler] = {
    "default": counted(default, "default", 2, 3),
    "list": _list,
    "first": _first,
    "last": _last,
    "length": length,
    "slice": counted(lambda budget, a: slice_of(budget, *a), "slice", 4, 4),
    "selectattr": counted(_select(False), "selectattr", 2, 4),
    "select": counted(_select(False), "select", 2, 4),
    "rejectattr": counted(_select(True), "rejectattr", 2, 4),
    "reject": counted(_select(True), "reject", 2, 4),
    "join": counted(_join, "join", 1, 3),
    "string": _array_text,
    "tojson": tojson,
    "map": counted(_map, "map", 2, MOST),
    "append": counted(_append, "append", 2, 2),
    "pop": counted(_pop, "pop", 1, 2),
    "sort": counted(_sort, "sort", 1, 4),
    "reverse": _reverse,
    "min": counted(_extreme("lt"), "min", 1, 4),
    "max": counted(_extreme("gt"), "max", 1, 4),
    "unique": not_implemented,
}
_OBJECT: dict[str, Handler] = {
    "get": counted(_get, "get", 2, 3),
    "keys": _of_object(list),
    "values": _of_object(lambda d: list(d.values())),
    "items": _of_object(lambda d: [tuple(pair) for pair in d.items()]),
    "tojson": tojson,
    "string": text_of,
    "length": length,
    "dictsort": counted(_dictsort, "dictsort", 1, 4),
    "join": not_implemented,
}
_EMPTY_ARRAY: Handler = lambda budget, a: []  # noqa: E731
_NONE: dict[str, Handler] = {
    "default": counted(default, "default", 2, 3),
    "tojson": tojson,
    "string": text_of,
    "safe": text_of,
} | dict.fromkeys(("items", "map", "reject", "rejectattr", "select", "selectattr", "unique"), _EMPTY_ARRAY)
_UNDEFINED: dict[str, Handler] = {"default": counted(default, "default", 2, 3)}
for _names, _empty in (
    (("capitalize", "join", "lower", "replace", "safe", "string", "strip", "title", "truncate", "upper"), b""),
    (("length", "sum", "wordcount"), 0),
):
    _UNDEFINED |= dict.fromkeys(_names, functools.partial(lambda empty, budget, a: empty, _empty))
_UNDEFINED |= dict.fromkeys(
    ("items", "list", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "unique"), _EMPTY_ARRAY
)
_UNDEFINED |= dict.fromkeys(("first", "last", "max", "min"), lambda budget, a: Undefined())


def handlers_of(value: Value) -> dict[str, Handler]:
    """The filters and methods of a value's type."""
    if isinstance(value, Loop):
        return {}
    if isinstance(value, Function):
        raise TemplateError("Function has no builtins")
    for kind, handlers in (
        (Undefined, _UNDEFINED),
        (bytes, STRING),
        (bool, _BOOLEAN),
        ((int, float), _NUMBER),
        ((list, tuple), _ARRAY),
        (dict, _OBJECT),
    ):
        if isinstance(value, kind):
            return handlers
    return _NONE
