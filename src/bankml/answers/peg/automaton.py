"""Texts that hold none of some strings, or end with the first of them, as GBNF rules: one a state of an Aho-Corasick
automaton, numbered as b11192 numbers them."""

from collections import deque
from collections.abc import Sequence

from bankml.grammar.json_schema.rules import RuleSet
from bankml.grammar.until import character_class


class _Automaton:
    """States are numbered in the order in which the strings' characters make them; 0 is the start."""

    def __init__(self, strings: Sequence[str]) -> None:
        self.children: list[dict[str, int]] = [{}]
        self.terminal = [False]
        for string in strings:
            self._insert(string)
        self.letters = sorted({letter for string in strings for letter in string})
        self._fail = [0] * len(self.children)
        pending = deque(self.children[0].values())
        while pending:
            state = pending.popleft()
            for letter, child in self.children[state].items():
                self._fail[child] = self.next(self._fail[state], letter)
                self.terminal[child] = self.terminal[child] or self.terminal[self._fail[child]]
                pending.append(child)

    def _insert(self, string: str) -> None:
        state = 0
        for letter in string:
            if letter not in self.children[state]:
                self.children[state][letter] = len(self.children)
                self.children.append({})
                self.terminal.append(False)
            state = self.children[state][letter]
        self.terminal[state] = True

    def next(self, state: int, letter: str) -> int:
        while state and letter not in self.children[state]:
            state = self._fail[state]
        return self.children[state].get(letter, 0)


def excluding(strings: Sequence[str], name: str, rules: RuleSet) -> str:
    """The name of the rule for text that has none of `strings` in it."""
    return _rules(strings, name, rules, including=False)


def including(strings: Sequence[str], name: str, rules: RuleSet) -> str:
    """The name of the rule for text up to and with the first of `strings`."""
    return _rules(strings, name, rules, including=True)


def _rules(strings: Sequence[str], name: str, rules: RuleSet, *, including: bool) -> str:
    automaton = _Automaton(strings)
    if automaton.terminal[0]:
        return rules.add(name, "|")
    for state, terminal in enumerate(automaton.terminal):
        if terminal:
            continue
        completing: list[str] = []
        onwards: dict[int, list[str]] = {}
        for letter in automaton.letters:
            target = automaton.next(state, letter)
            if automaton.terminal[target]:
                completing.append(letter)
            elif target:
                onwards.setdefault(target, []).append(letter)
        specific = sorted([*completing, *(letter for letters in onwards.values() for letter in letters)])
        alternatives = [f"{character_class(onwards[target])} {_state(name, target)}" for target in sorted(onwards)]
        others = f"{character_class(specific, '^')} {name}"
        if including:
            first = [character_class(completing)] if completing else []
            text = " | ".join([*first, *alternatives, others])
        else:
            text = " | ".join(["", *alternatives, others]).lstrip(" ")
        rules.add(_state(name, state), text)
    return name


def _state(name: str, state: int) -> str:
    return f"{name}-{state:02d}" if state else name
