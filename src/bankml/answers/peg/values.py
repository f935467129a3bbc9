"""Values that models write, as parts: JSON, and what Python writes for the same."""

from collections.abc import Callable

from bankml.answers.peg.builder import Builder, Part

ValueOf = Callable[[Builder], Part]


def json_value(p: Builder) -> Part:
    """A JSON value, as lenient as the reference's parser: control characters may stand in strings."""
    return p.recursive_rule(
        "json-value",
        lambda: p.choice(json_object(p), json_array(p), json_string(p), json_number(p), json_bool(p), json_null(p)),
    )


def json_object(p: Builder) -> Part:
    return p.recursive_rule("json-object", lambda: _members(p, json_string, json_value))


def json_array(p: Builder) -> Part:
    def body() -> Part:
        ws = p.let(p.space())
        others = p.repeat(p.sequence(ws, p.literal(","), ws, json_value(p)), 0)
        elements = p.let(p.sequence(json_value(p), others))
        return p.sequence(p.literal("["), ws, p.choice(p.literal("]"), p.sequence(elements, ws, p.literal("]"))))

    return p.recursive_rule("json-array", body)


def _members(p: Builder, key: ValueOf, value: ValueOf) -> Part:
    ws = p.let(p.space())
    member = p.let(p.sequence(key(p), ws, p.literal(":"), ws, value(p)))
    members = p.let(p.sequence(member, p.repeat(p.sequence(ws, p.literal(","), ws, member), 0)))
    return p.sequence(p.literal("{"), ws, p.choice(p.literal("}"), p.sequence(members, ws, p.literal("}"))))


def json_string(p: Builder) -> Part:
    return p.recursive_rule("json-string", lambda: _quoted(p, '"'))


def _quoted(p: Builder, quote: str) -> Part:
    return p.sequence(p.literal(quote), p.string_content(quote), p.literal(quote))


def json_number(p: Builder) -> Part:
    """Ends only where no longer number could be."""

    def body() -> Part:
        first = p.let(p.characters("[1-9]", 1, 1))
        digits = p.let(p.characters("[0-9]"))
        whole = p.let(p.choice(p.literal("0"), p.sequence(first, p.characters("[0-9]", 0))))
        fraction = p.let(p.sequence(p.literal("."), digits))
        sign = p.optional(p.characters("[+-]", 1, 1))
        exponent = p.let(p.sequence(p.choice(p.literal("e"), p.literal("E")), sign, digits))
        ended = p.let(p.not_ahead(p.characters("[0-9.eE+-]", 1, 1)))
        return p.sequence(p.optional(p.literal("-")), whole, p.optional(fraction), p.optional(exponent), ended)

    return p.recursive_rule("json-number", body)


def json_bool(p: Builder) -> Part:
    return p.recursive_rule("json-bool", lambda: p.choice(p.literal("true"), p.literal("false")))


def json_null(p: Builder) -> Part:
    return p.recursive_rule("json-null", lambda: p.literal("null"))


def json_member(p: Builder, key: str, value: Part) -> Part:
    """`"key": value`."""

    def make() -> int:
        value_id = value.id
        ws = p.let(p.space())
        return p.in_sequence([p.literal(f'"{key}"').id, ws.id, p.literal(":").id, ws.id, value_id])

    return Part(p, make)


def python_string(p: Builder) -> Part:
    def double() -> Part:
        return p.recursive_rule("double-quoted-string", lambda: _quoted(p, '"'))

    def single() -> Part:
        return p.recursive_rule("single-quoted-string", lambda: _quoted(p, "'"))

    return p.recursive_rule("python-string", lambda: p.choice(double(), single()))


def python_bool(p: Builder) -> Part:
    return p.recursive_rule("python-bool", lambda: p.choice(p.literal("True"), p.literal("False")))


def python_null(p: Builder) -> Part:
    return p.recursive_rule("python-none", lambda: p.literal("None"))


def python_or_json_value(p: Builder) -> Part:
    """Python's values, and JSON's true, false and null."""

    def body() -> Part:
        ws = p.let(p.space())
        value = p.let(python_or_json_value(p))
        member = p.let(p.sequence(python_string(p), ws, p.literal(":"), ws, value))
        members = p.let(p.sequence(member, p.repeat(p.sequence(ws, p.literal(","), ws, member), 0)))
        dictionary = p.let(p.recursive_rule("python-or-json-dict", lambda: _closed(p, "{}", members, ws)))
        elements = p.let(p.sequence(value, p.repeat(p.sequence(p.literal(","), ws, value), 0)))
        array = p.let(p.recursive_rule("python-or-json-array", lambda: _closed(p, "[]", elements, ws)))
        return p.choice(
            dictionary,
            array,
            python_string(p),
            json_number(p),
            python_bool(p),
            python_null(p),
            json_bool(p),
            json_null(p),
        )

    return p.recursive_rule("python-or-json-value", body)


def _closed(p: Builder, brackets: str, inside: Part, ws: Part) -> Part:
    end = brackets[1]
    return p.sequence(p.literal(brackets[0]), ws, p.choice(p.literal(end), p.sequence(inside, ws, p.literal(end))), ws)
