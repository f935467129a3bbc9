"""Rules for text up to a mark: a finite automaton, one rule per state."""

from bankml.grammar.json_schema.rules import RuleSet

ESCAPES = {"-": "\\-", "]": "\\]", "[": "\\[", "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def until(mark: str, name: str, rules: RuleSet) -> str:
    """The name of the rule for text that does not contain `mark`, which is not "".

    In state n the first n characters of the mark were read; any other character leads back to the first state.
    """
    letters = sorted(set(mark))
    for state in range(len(mark)):
        onwards: dict[int, list[str]] = {}
        for letter in letters:
            onwards.setdefault(_longest(mark, mark[:state] + letter), []).append(letter)
        seen = [letter for letter in letters if letter not in onwards.get(0, [])]
        alternatives = [
            f"{character_class(onwards[next_state])} {_state(name, next_state)}"
            for next_state in sorted(onwards)
            if 0 < next_state < len(mark)
        ]
        others = f"{character_class(seen, '^')} {name}"
        rules.add(_state(name, state), " | ".join(["", *alternatives, others]).lstrip(" "))
    return name


def _longest(mark: str, text: str) -> int:
    """The length of the longest suffix of `text` that is a prefix of `mark`."""
    return next(size for size in range(len(text), -1, -1) if mark.startswith(text[len(text) - size :]))


def _state(name: str, state: int) -> str:
    return f"{name}-{state:02d}" if state else name


def character_class(letters: list[str], negated: str = "") -> str:
    return f"[{negated}{''.join(map(_escaped, letters))}]"


def _escaped(letter: str) -> str:
    code = ord(letter)
    if letter in ESCAPES:
        return ESCAPES[letter]
    if 0x20 <= code <= 0x7E:
        return letter
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
