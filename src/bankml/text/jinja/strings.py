"""Filters and methods of strings, which are bytes: letters are ASCII, indices and lengths count bytes."""

from collections.abc import Callable

from bankml.text.jinja.arguments import MOST, Handler, argument, counted, expect, string
from bankml.text.jinja.budget import STEP_BYTES, RenderBudget, TemplateError
from bankml.text.jinja.general import length, not_implemented, same, slice_of, tojson
from bankml.text.jinja.values import Undefined, Value, as_text, is_int, truth


def _changed(change: Callable[[bytes], bytes]) -> Handler:
    def handler(budget: RenderBudget, a: list[Value]) -> Value:
        text = string(a[0])
        budget.text(len(text))
        return change(text)

    return handler


def _title(budget: RenderBudget, a: list[Value]) -> Value:
    text = string(a[0])
    budget.text(len(text))
    budget.step(len(text) // STEP_BYTES)
    previous_is_space, out = True, bytearray(text.lower())
    for at, byte in enumerate(out):
        space = byte in b" \t\n\v\f\r"
        if previous_is_space and not space:
            out[at : at + 1] = out[at : at + 1].upper()
        previous_is_space = space
    return bytes(out)


def _strip(left: bool, right: bool) -> Handler:
    def handler(budget: RenderBudget, a: list[Value]) -> Value:
        text = string(a[0])
        budget.text(len(text))
        given = argument(a, "chars", 1)
        chars = None if isinstance(given, Undefined) else _different(as_text(given, budget), budget)
        text = text.lstrip(chars) if left else text
        return text.rstrip(chars) if right else text

    return handler


def _different(text: bytes, budget: RenderBudget) -> bytes:
    """The distinct bytes in `text`: for every byte that is stripped all of them are compared."""
    budget.text(len(text))
    return bytes(set(text))


def _begins(method: Callable[[bytes, bytes], bool]) -> Handler:
    def handler(budget: RenderBudget, a: list[Value]) -> Value:
        text, part = string(a[0]), string(a[1])
        budget.text(len(part))
        return method(text, part)

    return handler


def _split(from_right: bool) -> Handler:
    def handler(budget: RenderBudget, a: list[Value]) -> Value:
        text, separator = string(a[0]), as_text(a[1], budget) if len(a) > 1 else b" "
        most = expect(a[2], int, "an integer") if len(a) > 2 else -1
        if not separator:
            raise TemplateError("empty separator")
        budget.text(2 * len(text))
        budget.step(text.count(separator))
        most = min(max(most, -1), len(text))
        return text.rsplit(separator, most) if from_right else text.split(separator, most)

    return handler


def _replace(budget: RenderBudget, a: list[Value]) -> Value:
    text, old, new = string(a[0]), string(a[1]), string(a[2])
    if len(a) > 3 and expect(a[3], int, "an integer") > 0:
        raise TemplateError("replace with a count is not implemented")
    budget.text(len(text))
    count = text.count(old) if old else len(text) + 1
    budget.text(len(text) + count * max(len(new) - len(old), 0))
    return text.replace(old, new) if old != new else text


def _format(budget: RenderBudget, a: list[Value]) -> Value:
    budget.text(len(string(a[0])))
    budget.step(a[0].count(b"{}"))
    parts = a[0].split(b"{}")
    if any(b"{" in part for part in parts):
        raise TemplateError("format() only supports simple '{}' placeholders")
    if len(parts) > len(a):
        raise TemplateError(f"'format' expected at least {len(parts)} arguments, got {len(a)}")
    out = parts[0]
    for part, given in zip(parts[1:], a[1:], strict=False):
        value = as_text(given, budget)
        budget.text(len(out) + len(value) + len(part))
        out += value + part
    return out


def _string_int(budget: RenderBudget, a: list[Value]) -> Value:
    given, default = argument(a, "base", 2), argument(a, "default", 1)
    base = 10 if isinstance(given, Undefined) else expect(given, int, "an integer")
    if base != 0 and not 2 <= base <= 36:
        raise TemplateError("int() base must be 0 or between 2 and 36")
    budget.text(len(string(a[0])))
    number = _leading_int(a[0], base)
    if number is not None and -(2**31) <= number < 2**31:
        return number
    return 0 if isinstance(default, Undefined) else expect(default, int, "an integer")


def _leading_int(text: bytes, base: int) -> int | None:
    """The integer at the beginning of `text`, as C's strtol parses it; None if there is none."""
    rest = text.lstrip()[:80].lower()
    sign, rest = (-1 if rest[:1] == b"-" else 1), rest[1:] if rest[:1] in (b"-", b"+") else rest
    if base in (0, 16) and rest[:2] == b"0x" and rest[2:3] in b"0123456789abcdef" and rest[2:3]:
        base, rest = 16, rest[2:]
    elif base == 0:
        base = 8 if rest[:1] == b"0" else 10
    digits = b"0123456789abcdefghijklmnopqrstuvwxyz"[:base]
    size = len(rest) - len(rest.lstrip(digits))
    return sign * int(rest[:size], base) if size else None


def _string_float(budget: RenderBudget, a: list[Value]) -> Value:
    text, default = string(a[0]), argument(a, "default", 1)
    for size in range(min(len(text), 80), 0, -1):
        try:
            return float(text[:size].replace(b"_", b"?"))
        except ValueError:
            continue
    return 0.0 if isinstance(default, Undefined) else float(expect(default, (int, float), "a number"))


def _string_default(budget: RenderBudget, a: list[Value]) -> Value:
    fallback = a[1] if len(a) > 1 and not isinstance(a[1], Undefined) else b""
    return fallback if truth(argument(a, "boolean", 2)) and not a[0] else a[0]


def _indent(budget: RenderBudget, a: list[Value]) -> Value:
    text, width = string(a[0]), argument(a, "width", 1)
    first, blank = truth(argument(a, "first", 2)), truth(argument(a, "blank", 3))
    if is_int(width):
        budget.text(max(width, 0))
        width = b" " * width
    margin = width if isinstance(width, bytes) else b"    "
    budget.text(len(text))
    budget.step(text.count(b"\n") + 1)
    lines = text.split(b"\n")
    ends_line = lines[-1] == b""
    if ends_line:
        lines.pop()
    budget.text((len(lines) + 1) * (len(margin) + 1))
    pieces: list[bytes] = []
    started = False
    for line in lines:
        if started:
            pieces.append(b"\n")
        indented = (line != b"" or blank) if started else first
        piece = (margin if indented else b"") + line
        pieces.append(piece)
        started = started or piece != b""
    out = b"".join(pieces)
    if text and ends_line:
        out += b"\n" + (margin if blank else b"")
    return out


STRING: dict[str, Handler] = {
    "default": _string_default,
    "upper": _changed(bytes.upper),
    "lower": _changed(bytes.lower),
    "strip": _strip(True, True),
    "rstrip": _strip(False, True),
    "lstrip": _strip(True, False),
    "title": _title,
    "capitalize": _changed(bytes.capitalize),
    "length": length,
    "startswith": counted(_begins(bytes.startswith), "startswith", 2, MOST),
    "endswith": counted(_begins(bytes.endswith), "endswith", 2, MOST),
    "split": counted(_split(False), "split", 1, 3),
    "rsplit": counted(_split(True), "rsplit", 1, 3),
    "replace": counted(_replace, "replace", 3, MOST),
    "format": _format,
    "int": _string_int,
    "float": _string_float,
    "string": same,
    "slice": counted(lambda budget, a: slice_of(budget, *a), "slice", 4, 4),
    "safe": same,
    "tojson": tojson,
    "indent": counted(_indent, "indent", 1, 4),
    "join": not_implemented,
}
