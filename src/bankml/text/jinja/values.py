"""The values a template computes with, by llama.cpp's rules for them.

Strings are Python bytes, since length, index and slice count bytes and case is ASCII's. Arrays are lists, tuples are
tuples, objects are dicts in the order of their keys; int, float, bool and None are Python's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bankml.text.jinja.budget import RenderBudget, TemplateError

Value = Any
Scope = dict[str, Value]


class Undefined:
    """The value of a missing name or key."""

    def __init__(self, hint: str = "") -> None:
        self.hint = hint


class Loop(dict[bytes, Value]):
    """The `loop` variable: an object whose keys are never hidden by methods."""


@dataclass(frozen=True)
class Keyword:
    name: str
    value: Value


@dataclass(frozen=True, eq=False)
class Function:
    """`call(arguments, the caller's scope)`; a method includes its subject."""

    name: str
    call: Callable[[list[Value], Scope], Value]


def is_int(value: Value) -> bool:
    return type(value) is int


def fitting(value: int | float) -> int | float:
    """A computed number; integers have 64 bits."""
    if is_int(value) and not -(2**63) <= value < 2**63:
        raise TemplateError(f"{float(value):g} is too large for an integer")
    return value


def is_number(value: Value) -> bool:
    return type(value) in (int, float)


def is_array(value: Value) -> bool:
    return isinstance(value, list | tuple)


def type_name(value: Value) -> str:
    if isinstance(value, Undefined):
        return f"Undefined (hint: '{value.hint}')" if value.hint else "Undefined"
    names = ((bool, "Boolean"), (int, "Integer"), (float, "Float"), (bytes, "String"), (tuple, "Tuple"))
    more = ((list, "Array"), (dict, "Object"), (Function, "Function"))
    return next((name for kind, name in (*names, *more) if isinstance(value, kind)), "None")


def truth(value: Value) -> bool:
    if isinstance(value, Undefined):
        return False
    if isinstance(value, Function):
        raise TemplateError("Function is not a bool value")
    return bool(value)


def from_json(value: Any) -> Value:
    """A JSON value as a template's; strings become UTF-8, a lone surrogate U+FFFD."""
    if isinstance(value, str):
        return text_bytes(value)
    if isinstance(value, list | tuple):
        return [from_json(item) for item in value]
    if isinstance(value, dict):
        return {text_bytes(key): from_json(item) for key, item in value.items()}
    return value


def text_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def as_text(value: Value, budget: RenderBudget) -> bytes:
    """A value as string operations see it."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Undefined | Function):
        raise TemplateError(f"{type_name(value)} is not a string value")
    out: list[bytes] = []
    _append_text(value, out, budget)
    return b"".join(out)


def _append_text(value: Value, out: list[bytes], budget: RenderBudget) -> None:
    budget.step()
    if isinstance(value, float):
        plain = f"{value:f}".rstrip("0")
        text = (plain + "0" if plain.endswith(".") else plain).encode()
        _put(text, out, budget)
    elif isinstance(value, dict):
        _put(b"{", out, budget)
        for i, (key, item) in enumerate(value.items()):
            _put(b", " if i else b"", out, budget)
            _append_repr(key, out, budget)
            _put(b": ", out, budget)
            _append_repr(item, out, budget)
        _put(b"}", out, budget)
    elif is_array(value):
        opening, closing = (b"(", b",)" if len(value) == 1 else b")") if isinstance(value, tuple) else (b"[", b"]")
        _put(opening, out, budget)
        for i, item in enumerate(value):
            _put(b", " if i else b"", out, budget)
            _append_repr(item, out, budget)
        _put(closing, out, budget)
    else:
        _put(str(value).encode(), out, budget)


def _append_repr(value: Value, out: list[bytes], budget: RenderBudget) -> None:
    if isinstance(value, bytes):
        _put(to_json(value, budget) if b"'" in value else b"'" + value + b"'", out, budget)
    elif isinstance(value, Undefined | Function):
        _put(type_name(value).encode(), out, budget)
    else:
        _append_text(value, out, budget)


def _put(text: bytes, out: list[bytes], budget: RenderBudget) -> None:
    budget.text(len(text))
    out.append(text)


def printed(value: Value, budget: RenderBudget) -> bytes:
    """What `{{ value }}` prints: of an array its items one after another; nothing for objects, None and Undefined."""
    if isinstance(value, bytes):
        budget.text(len(value))
        return value
    if is_array(value):
        budget.step(len(value))
        return b"".join([printed(item, budget) for item in value])
    if value is None or isinstance(value, Undefined | Function | dict):
        return b""
    return as_text(value, budget)


_ESCAPES = {c: f"\\u{c:04x}" for c in range(0x20)} | {0x22: '\\"', 0x5C: "\\\\"}
_ESCAPES |= {ord(c): "\\" + letter for c, letter in zip("\b\f\n\r\t", "bfnrt", strict=True)}


_ASCII_AS_IS = bytes(c for c in range(0x20, 0x80) if c not in b'"\\')
_AS_IS = _ASCII_AS_IS + bytes(range(0x80, 0x100))


@dataclass(frozen=True)
class JsonStyle:
    """`indent` in spaces; below 0 for one line."""

    indent: int = -1
    item_separator: bytes = b", "
    key_separator: bytes = b": "
    ascii_only: bool = False


def to_json(value: Value, budget: RenderBudget, style: JsonStyle | None = None) -> bytes:
    out: list[bytes] = []
    _JsonWriter(out, budget, style or JsonStyle()).value(value, 0)
    return b"".join(out)


@dataclass(frozen=True)
class _JsonWriter:
    """Writes JSON in `style`."""

    out: list[bytes]
    budget: RenderBudget
    style: JsonStyle

    def value(self, value: Value, level: int) -> None:
        self.budget.step()
        if isinstance(value, bytes):
            self.put(self.string(value))
        elif isinstance(value, bool):
            self.put(b"true" if value else b"false")
        elif isinstance(value, int):
            self.put(str(value).encode())
        elif isinstance(value, float):
            self.put(f"{value:g}".encode())
        elif is_array(value):
            self.items([(b"", item) for item in value], b"[]", level)
        elif isinstance(value, dict):
            self.items([(self.key(key), item) for key, item in value.items()], b"{}", level)
        else:
            self.put(b"null")

    def key(self, key: Value) -> bytes:
        return self.string(as_text(key, self.budget)) + self.style.key_separator

    def string(self, text: bytes) -> bytes:
        escaped = text.translate(None, _ASCII_AS_IS if self.style.ascii_only else _AS_IS)
        self.budget.text(len(text) + 5 * len(escaped))  # \u and four digits for each, at most
        return _json_string(text, self.style.ascii_only)

    def items(self, items: list[tuple[bytes, Value]], brackets: bytes, level: int) -> None:
        """Each item after its key, or alone in an array."""
        step, line_end = max(self.style.indent, 0), b"\n" if self.style.indent >= 0 else b""
        self.put(brackets[:1])
        for i, (key, item) in enumerate(items):
            self.budget.text(step * (level + 1))
            self.put((self.style.item_separator if i else b"") + line_end + b" " * (step * (level + 1)) + key)
            self.value(item, level + 1)
        if items:
            self.put(line_end + b" " * (step * level))
        self.put(brackets[1:])

    def put(self, text: bytes) -> None:
        _put(text, self.out, self.budget)


def _json_string(value: bytes, ascii_only: bool) -> bytes:
    # Bytes outside ASCII are copied, valid or not; Latin-1 keeps each one separate while the rest is escaped.
    escaped = ('"' + value.decode("latin-1").translate(_ESCAPES) + '"').encode("latin-1")
    if not ascii_only:
        return escaped
    text = escaped.decode("utf-8", "replace")
    return b"".join(c.encode() if c < "\x80" else _utf16_escape(c) for c in text)


def _utf16_escape(character: str) -> bytes:
    units = character.encode("utf-16-be")
    return b"".join(b"\\u%04x" % int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))


def hashable(value: Value, budget: RenderBudget) -> bool:
    """Whether every item is immutable and hashable: a list of lists is not, and never equals anything."""
    budget.step()
    if isinstance(value, Undefined | Function):
        return False
    if is_array(value) or isinstance(value, dict):
        items = value.values() if isinstance(value, dict) else value
        return all(not isinstance(item, list | dict) and hashable(item, budget) for item in items)
    return True


def key_of(value: Value, budget: RenderBudget) -> Any:
    """`value` as the key of an object."""
    if isinstance(value, list | dict | Undefined | Function) or not hashable(value, budget):
        raise TemplateError(f"Object key of unhashable type: {type_name(value)}")
    return value


def equal(left: Value, right: Value, budget: RenderBudget) -> bool:
    """The operator `==`."""
    budget.step()
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return isinstance(left, Undefined) and isinstance(right, Undefined)
    if isinstance(left, bytes) and isinstance(right, bytes):
        budget.text(min(len(left), len(right)))
        return left == right
    if isinstance(left, bool | int | float) and isinstance(right, bool | int | float):
        return left == right
    for kind in (list, tuple, dict):
        if isinstance(left, kind) and isinstance(right, kind):
            return len(left) == len(right) and _items_equal(left, right, budget)
    return left is None and right is None


def _items_equal(left: Any, right: Any, budget: RenderBudget) -> bool:
    if not (hashable(left, budget) and hashable(right, budget)):
        return False
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=True)
        return all(equal(a, c, budget) and equal(b, d, budget) for (a, b), (c, d) in pairs)
    return all(equal(a, b, budget) for a, b in zip(left, right, strict=True))


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compare(left: Value, right: Value, relation: str, budget: RenderBudget) -> bool:
    """The order used by the tests `eq ne lt gt ge` and by sorting: a string beside a number compares as text."""
    budget.step()
    if is_number(left) and is_number(right):
        return _ORDER[relation](float(left), float(right))
    if any(isinstance(v, bytes) for v in (left, right)) and all(
        isinstance(v, bytes) or is_number(v) for v in (left, right)
    ):
        a, b = as_text(left, budget), as_text(right, budget)
        budget.text(min(len(a), len(b)))
        return _ORDER[relation](a, b)
    if isinstance(left, bool) and isinstance(right, bool):
        if relation not in ("eq", "ne"):
            raise TemplateError("Unsupported comparison operator for bool type")
        return _ORDER[relation](left, right)
    return False
