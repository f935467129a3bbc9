"""The tests of the operator `is`, and the operator `in`."""

from collections.abc import Callable

from bankml.text.jinja.arguments import expect, string
from bankml.text.jinja.budget import RenderBudget, TemplateError
from bankml.text.jinja.values import Function, Undefined, Value, compare, equal, is_array, key_of, type_name

Test = Callable[[RenderBudget, list[Value]], bool]


def member(needle: Value, haystack: Value, budget: RenderBudget) -> bool:
    """The operator `in`."""
    if isinstance(haystack, Undefined):
        return False
    if is_array(haystack):
        return any(equal(needle, item, budget) for item in haystack)
    if isinstance(haystack, bytes):
        budget.text(len(haystack))
        return string(needle) in haystack
    if isinstance(haystack, dict):
        return key_of(needle, budget) in haystack
    raise TemplateError(f"'in' expects an iterable, got {type_name(haystack)}")


def _kind(*kinds: type) -> Test:
    return lambda budget, a: type(a[0]) in kinds or (bytes in kinds and isinstance(a[0], bytes))


def _as_changed(change: Callable[[bytes], bytes]) -> Test:
    def test(budget: RenderBudget, a: list[Value]) -> bool:
        text = string(a[0])
        budget.text(len(text))
        return text == change(text)

    return test


def _whole_number(value: Value) -> int:
    return expect(value, int, "an integer")  # type: ignore[no-any-return]


def _divisible(budget: RenderBudget, a: list[Value]) -> bool:
    if _whole_number(a[1]) == 0:
        raise TemplateError("division by zero")
    return bool(_whole_number(a[0]) % a[1] == 0)


def _related(relation: str) -> Test:
    return lambda budget, a: compare(a[0], a[1], relation, budget)


TESTS: dict[str, Test] = {
    "boolean": _kind(bool),
    "callable": _kind(Function),
    "odd": lambda budget, a: _whole_number(a[0]) % 2 != 0,
    "even": lambda budget, a: _whole_number(a[0]) % 2 == 0,
    "false": lambda budget, a: a[0] is False,
    "true": lambda budget, a: a[0] is True,
    "divisibleby": _divisible,
    "string": _kind(bytes),
    "integer": _kind(int),
    "float": _kind(float),
    "number": _kind(int, float),
    "iterable": _kind(list, tuple, bytes, Undefined),
    "sequence": _kind(list, tuple, bytes, Undefined),
    "mapping": lambda budget, a: isinstance(a[0], dict),
    "lower": _as_changed(bytes.lower),
    "upper": _as_changed(bytes.upper),
    "none": lambda budget, a: a[0] is None,
    "defined": lambda budget, a: not isinstance(a[0], Undefined),
    "undefined": _kind(Undefined),
    "in": lambda budget, a: member(a[0], a[1], budget),
    "test": lambda budget, a: string(a[0])[:64].decode("utf-8", "replace") in TESTS,
} | {name: _related(name) for name in ("eq", "ge", "gt", "lt", "ne")}
TESTS |= {"equalto": TESTS["eq"], "greaterthan": TESTS["gt"], "lessthan": TESTS["lt"]}
TWO_SIDED = {"divisibleby", "eq", "equalto", "ge", "gt", "greaterthan", "lt", "lessthan", "ne", "in"}
