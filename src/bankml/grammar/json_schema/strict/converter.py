"""One JSON schema to GBNF rules that accept valid values only. What cannot be held is a SchemaError with its path."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import permutations
from typing import Any, NoReturn

from bankml.grammar.json_schema.json_text import json_text
from bankml.grammar.json_schema.problems import SchemaError
from bankml.grammar.json_schema.rules import RuleSet, joined, literal, repetition, separated
from bankml.grammar.json_schema.strict.keywords import (
    ANNOTATIONS,
    FORMAT_PATTERNS,
    KEYWORDS_OF,
    NEVER_ENFORCED,
    are_exclusive,
    merged,
)
from bankml.grammar.json_schema.strict.numbers import SMALLEST_STEP, decimal_rule, integer_rule
from bankml.grammar.json_schema.strict.objects import object_text
from bankml.grammar.json_schema.strict.regex import Unenforceable, regex_rule

Schema = dict[str, Any]

MAX_LISTED = 4096
"""Integers or arrays that are listed one by one, where no shorter rule holds them."""

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


def strict_rule(schema: object, rules: RuleSet, name: str = "root") -> str:
    """The name of the rule, made of `name`, for the values that `schema` allows. Raises SchemaError."""
    return StrictConverter(schema, rules).visit(schema, "#", name)


class StrictConverter:
    """Converts one document; references are resolved in it, and each target becomes one rule."""

    def __init__(self, document: object, rules: RuleSet) -> None:
        self._document = document
        self.rules = rules
        self._targets: dict[str, str] = {}
        self._depth = 0

    def visit(self, schema: object, path: str, name: str) -> str:
        """The name of the rule for `schema`, which is at `path`."""
        self.rules.budget.step()
        self.rules.budget.text(len(path) + len(name))
        self._depth += 1
        self.rules.budget.level(self._depth)
        try:
            return self.rules.add(name, self._text(schema, path, name))
        finally:
            self._depth -= 1

    def refuse(self, path: str, keyword: str, why: str = "cannot be enforced") -> NoReturn:
        raise SchemaError(f"strict JSON schema: '{keyword}' at {path} {why}")

    def _text(self, schema: object, path: str, name: str) -> str:
        if schema is True or schema == {}:
            return self.rules.add_fixed("value")
        if not isinstance(schema, dict):
            self.refuse(path, "schema", "must be an object")
        given = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        for key in given:
            if key in NEVER_ENFORCED:
                self.refuse(f"{path}/{key}", key)
        if "$ref" in given:
            if len(given) > 1:
                self.refuse(f"{path}/$ref", "$ref", f"cannot be enforced together with '{_other(given, '$ref')}'")
            return self._reference(given["$ref"], path)
        if "allOf" in given:
            return self._text(self._all_of(given, path), path, name)
        for key in ("anyOf", "oneOf"):
            if key in given:
                return self._any_of(given, key, path, name)
        if "const" in given or "enum" in given:
            return self._listed(given, path)
        return self._typed(given, path, name)

    # ---- references and combinations

    def _reference(self, ref: object, path: str) -> str:
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            self.refuse(f"{path}/$ref", "$ref", "must refer into the same document")
        if ref not in self._targets:
            self._targets[ref] = self.rules.reserve("ref" + ref[1:])
            target: Any = self._document
            for part in ref[2:].split("/") if ref != "#" else []:
                key = part.replace("~1", "/").replace("~0", "~")
                if not isinstance(target, dict) or key not in target:
                    self.refuse(f"{path}/$ref", "$ref", f"names nothing: {ref[:80]}")
                target = target[key]
            self.rules.define(self._targets[ref], self._text(target, ref, self._targets[ref]))
        return self._targets[ref]

    def _all_of(self, given: Schema, path: str) -> Schema:
        parts = given["allOf"]
        if not isinstance(parts, list) or not all(isinstance(one, dict) for one in parts):
            self.refuse(f"{path}/allOf", "allOf", "must be an array of schemas")
        whole = {key: value for key, value in given.items() if key != "allOf"}
        for part in parts:
            try:
                whole = merged(whole, self._resolved(part, path))
            except ValueError as error:
                self.refuse(f"{path}/allOf", "allOf", f"cannot be enforced: {error}")
        return whole

    def _resolved(self, part: Schema, path: str) -> Schema:
        """`part`, or what it refers to: parts of allOf are merged as they are written."""
        ref = part.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return part
        target: Any = self._document
        for key in ref[2:].split("/"):
            target = target.get(key) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            self.refuse(f"{path}/$ref", "$ref", f"names nothing: {ref[:80]}")
        return target

    def _any_of(self, given: Schema, key: str, path: str, name: str) -> str:
        branches = given[key]
        if not isinstance(branches, list) or not branches:
            self.refuse(f"{path}/{key}", key, "must be an array of schemas that is not empty")
        rest = {one: value for one, value in given.items() if one != key}
        if rest and not all(isinstance(one, dict) for one in branches):
            self.refuse(f"{path}/{key}", key, f"cannot be enforced together with '{_other(given, key)}'")
        try:
            whole = [merged(rest, self._resolved(one, path)) if rest else one for one in branches]
        except ValueError as error:
            self.refuse(f"{path}/{key}", key, f"cannot be enforced: {error}")
        if key == "oneOf" and not are_exclusive([self._resolved(one, path) for one in whole]):
            self.refuse(f"{path}/oneOf", "oneOf", "cannot be enforced: its schemas may allow the same value")
        return joined([self.visit(one, f"{path}/{key}/{i}", f"{name}-{i}") for i, one in enumerate(whole)])

    def _listed(self, given: Schema, path: str) -> str:
        key = "const" if "const" in given else "enum"
        if other := next((one for one in given if one not in (key, "type")), None):
            self.refuse(f"{path}/{other}", other, f"cannot be enforced together with '{key}'")
        values = [given["const"]] if key == "const" else given["enum"]
        if not isinstance(values, list) or not values:
            self.refuse(f"{path}/enum", "enum", "must be an array that is not empty")
        types = given.get("type", TYPES)
        kept = [value for value in values if _is_of(value, [types] if isinstance(types, str) else types)]
        if not kept:
            self.refuse(f"{path}/{key}", key, "has no value of the type")
        return f"({joined([literal(json_text(value)) for value in kept])})"

    # ---- types

    def _typed(self, given: Schema, path: str, name: str) -> str:
        types = given.get("type")
        if types is None:
            types = [one for one in TYPES if KEYWORDS_OF.get(one, frozenset()) & given.keys()][:1]
            if not types:
                return self.rules.add_fixed("value")
        kinds = [types] if isinstance(types, str) else types
        if not isinstance(kinds, list) or not kinds or not all(one in TYPES for one in kinds):
            self.refuse(f"{path}/type", "type", f"must be one or several of {', '.join(TYPES)}")
        known = frozenset({"type"}).union(*(KEYWORDS_OF.get(one, frozenset()) for one in kinds))
        if other := next((one for one in given if one not in known and one in ALL_KEYWORDS), None):
            self.refuse(f"{path}/{other}", other, f"does not apply to the type {' or '.join(kinds)}")
        made = [self._of_type(given, one, path, name) for one in kinds]
        return made[0] if len(made) == 1 else f"({joined(made)})"

    def _of_type(self, given: Schema, kind: str, path: str, name: str) -> str:
        methods: dict[str, Callable[[Schema, str, str], str]] = {
            "object": lambda schema, path, name: object_text(self, schema, path, name),
            "array": self._array,
            "string": self._string,
            "number": self._number,
            "integer": self._integer,
        }
        return methods[kind](given, path, name) if kind in methods else self.rules.add_fixed(kind)

    def _string(self, given: Schema, path: str, name: str) -> str:
        kinds: list[str] = [key for key in ("pattern", "format") if key in given]
        kinds += ["minLength"] if "minLength" in given or "maxLength" in given else []
        if len(kinds) > 1:
            self.refuse(f"{path}/{kinds[1]}", kinds[1], f"cannot be enforced together with '{kinds[0]}'")
        if "pattern" in given:
            return self.pattern(given["pattern"], f"{path}/pattern")
        if "format" in given:
            return self._format(given["format"], path)
        low, high = self.count(given, "minLength", path) or 0, self.count(given, "maxLength", path)
        if not low and high is None:
            return self.rules.add_fixed("string")
        return rf'"\"" {repetition(self.rules.add_fixed("char"), low, high)} "\""'

    def pattern(self, pattern: object, path: str) -> str:
        """The text of a rule for JSON strings in which `pattern` matches."""
        if not isinstance(pattern, str):
            self.refuse(path, "pattern", "must be a string")
        try:
            return regex_rule(pattern, self.rules)
        except Unenforceable as error:
            self.refuse(path, "pattern", f"cannot be enforced: {error}")

    def _format(self, wanted: object, path: str) -> str:
        if wanted == "uuid":
            return self.rules.add_fixed("uuid")
        if wanted in ("date", "time", "date-time"):
            return self.rules.add_fixed(f"{wanted}-string")
        if not isinstance(wanted, str) or wanted not in FORMAT_PATTERNS:
            self.refuse(f"{path}/format", "format", f"cannot be enforced: {json_text(wanted)[:80]}")
        return regex_rule(FORMAT_PATTERNS[wanted], self.rules)

    def _integer(self, given: Schema, path: str, name: str) -> str:
        low, high = self._bounds(given, path)
        least = None if low is None else int(low.to_integral_value("ROUND_CEILING"))
        most = None if high is None else int(high.to_integral_value("ROUND_FLOOR"))
        if least is not None and most is not None and least > most:
            self.refuse(f"{path}/maximum", "maximum", "leaves no integer")
        step = given.get("multipleOf", 1)
        if step == 1:
            return integer_rule(least, most) if (least, most) != (None, None) else self.rules.add_fixed("integer")
        if isinstance(step, bool) or not isinstance(step, int) or step < 1:
            self.refuse(f"{path}/multipleOf", "multipleOf")
        if least is None or most is None or (most - least) // step > MAX_LISTED:
            self.refuse(
                f"{path}/multipleOf", "multipleOf", f"needs a range of at most {MAX_LISTED} values to be enforced"
            )
        return f"({joined([literal(str(value)) for value in range(-(-least // step) * step, most + 1, step)])})"

    def _number(self, given: Schema, path: str, name: str) -> str:
        low, high = self._bounds(given, path)
        if low is not None and high is not None and low > high:
            self.refuse(f"{path}/maximum", "maximum", "leaves no number")
        step = given.get("multipleOf")
        if step is None:
            return decimal_rule(low, high) if (low, high) != (None, None) else self.rules.add_fixed("number")
        if isinstance(step, int) and not isinstance(step, bool):
            return self._integer(given, path, name)
        digits = Decimal(str(step))
        if (low, high) != (None, None) or digits != Decimal(1).scaleb(digits.adjusted()) or digits.adjusted() >= 0:
            self.refuse(f"{path}/multipleOf", "multipleOf")
        return f'{self.rules.add_fixed("integer")} ("." [0-9]{{1,{-digits.adjusted()}}})?'

    def _bounds(self, given: Schema, path: str) -> tuple[Decimal | None, Decimal | None]:
        """The least and the greatest number, both included: an excluded bound is moved by the smallest step."""
        found: dict[str, Decimal] = {}
        for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
            if key in given:
                value = given[key]
                if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= 10**15:
                    self.refuse(f"{path}/{key}", key, "must be a number below 10^15")
                found[key] = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
        if "exclusiveMinimum" in found:
            found["exclusiveMinimum"] += SMALLEST_STEP
        if "exclusiveMaximum" in found:
            found["exclusiveMaximum"] -= SMALLEST_STEP
        lows = [found[key] for key in ("minimum", "exclusiveMinimum") if key in found]
        highs = [found[key] for key in ("maximum", "exclusiveMaximum") if key in found]
        return max(lows, default=None), min(highs, default=None)

    def _array(self, given: Schema, path: str, name: str) -> str:
        low, high = self.count(given, "minItems", path) or 0, self.count(given, "maxItems", path)
        prefix = given.get("prefixItems", [])
        if not isinstance(prefix, list):
            self.refuse(f"{path}/prefixItems", "prefixItems", "must be an array of schemas")
        if given.get("uniqueItems") and high not in (0, 1):
            return self._unique(given, low, high, path)
        if not prefix:
            item = self.visit(given.get("items", True), f"{path}/items", f"{name}-item")
            return f'"[" space {separated(item, chr(34) + "," + chr(34) + " space", low, high)} space "]"'
        if low > len(prefix) or (high is not None and high < len(prefix)):
            self.refuse(f"{path}/prefixItems", "prefixItems", "does not fit minItems and maxItems")
        items = [self.visit(one, f"{path}/prefixItems/{i}", f"{name}-{i}") for i, one in enumerate(prefix)]
        return f'"[" space {(chr(34) + "," + chr(34) + " space ").join(one + " " for one in items)}space "]"'

    def _unique(self, given: Schema, low: int, high: int | None, path: str) -> str:
        """Arrays of different values of a small enum, listed."""
        items = given.get("items")
        values = (
            items.get("enum") if isinstance(items, dict) and items.keys() <= {"enum", "type", *ANNOTATIONS} else None
        )
        if not isinstance(values, list) or "prefixItems" in given:
            self.refuse(f"{path}/uniqueItems", "uniqueItems", "is enforced for the values of an enum only")
        most = len(values) if high is None else min(high, len(values))
        arrays: list[Sequence[object]] = []
        for size in range(low, most + 1):
            for one in permutations(values, size):
                arrays.append(one)
                if len(arrays) > MAX_LISTED:
                    self.refuse(f"{path}/uniqueItems", "uniqueItems", f"allows more than {MAX_LISTED} arrays")
        texts = ['"," space '.join(f"{literal(json_text(value))} " for value in one) for one in arrays]
        return '"[" space (' + joined([text or '""' for text in texts]) + ') space "]"'

    def count(self, given: Schema, key: str, path: str) -> int | None:
        """A length's limit; None without one."""
        value = given.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31):
            self.refuse(f"{path}/{key}", key, "must be a non-negative integer")
        return value


ALL_KEYWORDS = frozenset().union(*KEYWORDS_OF.values())


def _other(given: Schema, key: str) -> str:
    return next(one for one in given if one != key)


def _is_of(value: object, types: Sequence[str]) -> bool:
    """Whether a JSON value is of one of `types`."""
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer" in types or "number" in types
    names = {float: "number", str: "string", list: "array", dict: "object", type(None): "null"}
    return names[type(value)] in types
