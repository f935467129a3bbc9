"""Objects as rules: properties in the schema's order, optional ones, and additional ones after them."""

from collections.abc import Mapping, Sequence

from bankml.grammar.json_schema.json_text import json_text
from bankml.grammar.json_schema.rules import RuleSet, literal

OTHERS = "*"
"""Stands for all additional properties; like a property of this name, it may occur more than once."""


def key_and_value(name: str, value: str) -> str:
    """A rule's text: the property `name`, with a value by the rule `value`."""
    return f'{literal(json_text(name))} space ":" space {value}'


def object_rule(
    required: Sequence[str], optional: Sequence[str], pairs: Mapping[str, str], name: str, rules: RuleSet
) -> str:
    """A rule's text for an object of these properties; `pairs` has the rule of each, key and value."""
    if not required and not optional:
        return '"{" space "}"'
    text = '"{" space ' + ' "," space '.join(pairs[one] for one in required)
    if optional:
        choices = " | ".join(_beginnings(optional, pairs, name, rules))
        text += f' ( "," space ( {choices} ) )?' if required else f" ({choices} )?"
    return text + ' space "}"'


def _beginnings(optional: Sequence[str], pairs: Mapping[str, str], name: str, rules: RuleSet) -> list[str]:
    """For each optional property: it, then what may follow, which is a rule; the last one is made first."""
    choices: list[str] = []
    rest = ""
    for one in reversed(optional):
        pair = pairs[one]
        after_comma = f'( "," space {pair} )'
        follows = f" {rest}" if rest else ""
        choices.append(pair + (f" {after_comma}*" if one == OTHERS else "") + follows)
        if len(choices) < len(optional):
            before = optional[len(optional) - len(choices) - 1]
            rest = rules.add(f"{name}{before}-rest", after_comma + ("*" if one == OTHERS else "?") + follows)
    return choices[::-1]


def other_keys(names: Sequence[str], character: str) -> str:
    """A rule's text for JSON strings other than `names`; `character` is the rule of one character.

    A string differs from the names at a character that none of them has there, or continues after one's end.
    """
    root: dict[str, object] = {}
    for name in names:
        node = root
        for one in name:
            node = node.setdefault(one, {})  # type: ignore[assignment]
    out = ['["] ( ']
    pending: list[str | dict[str, object]] = [root]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        parts: list[str | dict[str, object]] = []
        letters = sorted(item)
        for i, letter in enumerate(letters):
            child = item[letter]
            parts.append(f"{' | ' if i else ''}[{letter}]")
            parts += [" (", child, ")"] if child else [f" {character}+"]  # type: ignore[list-item]
        if letters:
            parts.append(f' | [^"{"".join(letters)}] {character}*')
        pending += reversed(parts)
    optional = "" if "" in names else "?"
    return f'{"".join(out)} ){optional} ["]'
