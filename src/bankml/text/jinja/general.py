"""Filters and methods that values of several types have."""

from bankml.text.jinja.arguments import argument, expect
from bankml.text.jinja.budget import RenderBudget, TemplateError
from bankml.text.jinja.values import (
    JsonStyle,
    Undefined,
    Value,
    as_text,
    is_array,
    is_int,
    to_json,
    truth,
    type_name,
)


def default(budget: RenderBudget, a: list[Value]) -> Value:
    if truth(argument(a, "boolean", 2)):
        return a[0] if truth(a[0]) else a[1]
    return a[1] if a[0] is None or isinstance(a[0], Undefined) else a[0]


def tojson(budget: RenderBudget, a: list[Value]) -> Value:
    if truth(argument(a, "sort_keys", 4)):
        raise TemplateError("tojson sort_keys=true is not implemented")
    given = argument(a, "indent", 2)
    indent = given if is_int(given) else -1
    separators = argument(a, "separators", 3)
    separators = list(separators) if is_array(separators) else []
    item = as_text(separators[0], budget) if separators else (b", " if indent < 0 else b",")
    key = as_text(separators[1], budget) if len(separators) > 1 else b": "
    return to_json(a[0], budget, JsonStyle(indent, item, key, truth(argument(a, "ensure_ascii", 1))))


def number_text(budget: RenderBudget, a: list[Value]) -> Value:
    return to_json(a[0], budget)


def not_implemented(budget: RenderBudget, a: list[Value]) -> Value:
    raise TemplateError("not implemented")


def length(budget: RenderBudget, a: list[Value]) -> Value:
    return len(a[0])


def same(budget: RenderBudget, a: list[Value]) -> Value:
    return a[0]


def text_of(budget: RenderBudget, a: list[Value]) -> Value:
    return as_text(a[0], budget)


def slice_of(budget: RenderBudget, value: Value, start: Value, stop: Value, step: Value) -> Value:
    """`value[start:stop:step]` of a string or an array, with all three given."""
    if not isinstance(value, bytes | list | tuple):
        raise TemplateError(f"Unknown (built-in) filter 'slice' for type {type_name(value)}")
    begin, end, stride = (expect(v, int, "an integer") for v in (start, stop, step))
    if stride == 0:
        raise TemplateError("slice step cannot be zero")
    size = len(value)
    if stride > 0:
        begin, end = (max(size + v, 0) if v < 0 else min(v, size) for v in (begin, end))
    else:
        begin = max(size + begin, 0) if begin < 0 else min(begin, size - 1)
        end = max(size + end, -1) if end < -1 else min(end, size - 1)
    indices = range(begin, end, stride) if size else range(0)
    if isinstance(value, bytes):
        budget.text(len(indices))
        return bytes(value[begin:end]) if stride == 1 else bytes([value[i] for i in _counted(budget, indices)])
    items = [value[i] for i in _counted(budget, indices)]
    return tuple(items) if isinstance(value, tuple) else items


def _counted(budget: RenderBudget, indices: range) -> range:
    budget.step(len(indices))
    return indices
