"""The operators between two values."""

import math

from bankml.text.jinja.budget import RenderBudget, TemplateError
from bankml.text.jinja.tests import member
from bankml.text.jinja.values import Undefined, Value, as_text, equal, is_array, is_int, is_number, type_name

_RELATIONS = {"lt": "<", "gt": ">", "lteq": "<=", "gteq": ">="}


def number(value: Value) -> int | float:
    if not is_number(value):
        raise TemplateError("a sign needs a number")
    return value  # type: ignore[no-any-return]


def operate(operator: str, left: Value, right: Value, budget: RenderBudget) -> Value:
    """`left operator right` for + - * / % and ~."""
    joins = operator in ("+", "~")
    if _is_nothing(left) or _is_nothing(right):
        if joins and isinstance(right if _is_nothing(left) else left, bytes):
            return right if _is_nothing(left) else left
        raise TemplateError(f"Cannot perform operation {operator} on {type_name(left)} and {type_name(right)}")
    if is_number(left) and is_number(right) and operator != "~":
        return _calculate(operator, left, right)
    if operator == "+" and is_array(left) and is_array(right):
        budget.step(len(left) + len(right))
        return [*left, *right]
    if joins and (isinstance(left, bytes) or isinstance(right, bytes)):
        a, b = as_text(left, budget), as_text(right, budget)
        budget.text(len(a) + len(b))
        return a + b
    if operator == "*" and {isinstance(left, bytes), isinstance(right, bytes)} == {True, False}:
        text, count = (left, right) if isinstance(left, bytes) else (right, left)
        if is_int(count):
            budget.text(len(text) * max(count, 0))
            return text * count
    raise TemplateError(f'Unknown operator "{operator}" between {type_name(left)} and {type_name(right)}')


def _is_nothing(value: Value) -> bool:
    return value is None or isinstance(value, Undefined)


def _calculate(operator: str, left: int | float, right: int | float) -> Value:
    try:
        a, b = _float(left), _float(right)
        if operator == "/":
            return a / b
        result = (
            a + b if operator == "+" else a - b if operator == "-" else a * b if operator == "*" else math.fmod(a, b)
        )
        if not (is_int(left) and is_int(right)):
            return result
        if not -(2.0**63) <= result < 2.0**63:
            raise OverflowError
        return int(result)
    except (ZeroDivisionError, OverflowError, ValueError):
        raise TemplateError(f"{left} {operator} {right} has no value") from None


def _float(value: int | float) -> float:
    result = float(value)
    if is_int(value) and result != value:
        raise ValueError("an integer that no double can hold")
    return result


def relate(relation: str, left: Value, right: Value, budget: RenderBudget) -> bool:
    """`left relation right` for Jinja2's names of the comparisons."""
    if relation in ("eq", "ne"):
        return equal(left, right, budget) == (relation == "eq")
    if relation in ("in", "notin"):
        return _is_in(left, right, budget) == (relation == "in")
    if not (is_number(left) and is_number(right)):
        raise TemplateError(
            f'Unknown operator "{_RELATIONS[relation]}" between {type_name(left)} and {type_name(right)}'
        )
    return bool({"lt": left < right, "gt": left > right, "lteq": left <= right, "gteq": left >= right}[relation])


def _is_in(left: Value, right: Value, budget: RenderBudget) -> bool:
    if isinstance(right, Undefined):
        return False
    if isinstance(left, Undefined) or right is None:
        raise TemplateError(f"Cannot look for {type_name(left)} in {type_name(right)}")
    if not (
        (is_array(right) and not is_array(left))
        or isinstance(right, dict)
        or (isinstance(right, bytes) and (left is None or isinstance(left, bytes)))
    ):
        raise TemplateError(f'Unknown operator "in" between {type_name(left)} and {type_name(right)}')
    return member(left, right, budget)
