"""The matcher written plainly, to compare the native one with: stacks as tuples, one token at a time.

It reads gbnf.ParsedGrammar and does what src/llama-grammar.cpp of b11192 does to a token: decode, follow, inspect cuts.
"""

from bankml.grammar import gbnf

ENDS = (gbnf.END, gbnf.ALTERNATIVE)
TOKENS = (gbnf.TOKEN, gbnf.NOT_TOKEN)


def decode(data, bits, missing):
    """(characters, bits and missing bytes of the last one); missing -1 for what is no UTF-8."""
    data = data.split(b"\0")[0]
    characters, at, started = [], 0, missing > 0
    while at < len(data) and missing > 0:
        if data[at] >> 6 != 2:
            return [], 0, -1
        bits, missing, at = (bits << 6) + (data[at] & 63), missing - 1, at + 1
    if started and missing == 0:
        characters.append(bits)
    while at < len(data):
        first, at = data[at], at + 1
        missing = 0 if first < 0x80 else -1 if first < 0xC0 else 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if missing < 0:
            return [], 0, -1
        bits = first & ((1 << (7 - missing)) - 1)
        while at < len(data) and missing > 0:
            bits, missing, at = (bits << 6) + (data[at] & 63), missing - 1, at + 1
        if missing == 0:
            characters.append(bits)
    return characters, bits, missing


class TooLarge(Exception):
    """The grammar has too many stacks for the plain way."""


class ModelMatcher:
    def __init__(self, rules: gbnf.ParsedGrammar, pieces, ends, steps=10_000):
        self.steps = steps
        self.kinds, self.values = rules.kinds.tolist(), rules.values.tolist()
        self.starts = rules.starts.tolist()
        self.pieces, self.ends = pieces, set(ends)
        self.stacks = set()
        for start in self.alternatives(rules.root):
            self.stacks |= self.opened(self.onto((), start))
        self.cut = (0, 0)

    def alternatives(self, rule):
        at = self.starts[rule]
        while True:
            yield at
            while self.kinds[at] not in ENDS:
                at += 1
            if self.kinds[at] == gbnf.END:
                return
            at += 1

    def onto(self, stack, at):
        return stack if self.kinds[at] in ENDS else (*stack, at)

    def opened(self, stack):
        """The stacks with something to match on top that `stack` stands for."""
        pending, seen, out = [stack], set(), set()
        while pending:
            stack = pending.pop()
            if stack in seen:
                continue
            seen.add(stack)
            self.steps -= 1
            if self.steps < 0:
                raise TooLarge
            if not stack or self.kinds[stack[-1]] != gbnf.RULE:
                out.add(stack)
                continue
            rest = self.onto(stack[:-1], stack[-1] + 1)
            pending += [self.onto(rest, start) for start in self.alternatives(self.values[stack[-1]])]
        return out

    def ranges(self, at):
        """(negated, ranges or None for any, the position after the set)"""
        kind = self.kinds[at]
        ranges = []
        while True:
            low = high = self.values[at]
            if self.kinds[at + 1] == gbnf.UPPER:
                at += 1
                high = self.values[at]
            ranges.append((low, high))
            at += 1
            if self.kinds[at] != gbnf.ALSO:
                return kind == gbnf.NOT_CHARACTER, None if kind == gbnf.ANY else ranges, at

    def holds(self, at, c):
        negated, ranges, _ = self.ranges(at)
        return ranges is None or any(low <= c <= high for low, high in ranges) != negated

    def may_hold(self, at, bits, missing):
        negated, ranges, _ = self.ranges(at)
        if missing < 0 or (missing == 1 and bits < 2):
            return False
        if ranges is None:
            return True
        low = bits << 6 * missing
        high = low | ((1 << 6 * missing) - 1)
        low = low or {2: 0x800, 3: 0x10000}.get(missing, 0)
        return any(a <= high and low <= b for a, b in ranges) != negated

    def wants(self, stack, token):
        kind = self.kinds[stack[-1]]
        return (self.values[stack[-1]] == token) == (kind == gbnf.TOKEN)

    def is_token(self, stack):
        return bool(stack) and self.kinds[stack[-1]] in TOKENS

    def after(self, stacks, c):
        out = set()
        for stack in stacks:
            if stack and not self.is_token(stack) and self.holds(stack[-1], c):
                out |= self.opened(self.onto(stack[:-1], self.ranges(stack[-1])[2]))
        return out

    @property
    def complete(self):
        return () in self.stacks

    def allows(self, token):
        if token in self.ends:
            return self.complete
        if not self.pieces[token].split(b"\0")[0]:
            return False
        characters, bits, missing = decode(self.pieces[token], *self.cut)
        if missing < 0:
            return False
        stacks = self.stacks
        for c in characters:
            if c == 0:
                break
            if any(self.is_token(s) and self.wants(s, token) for s in stacks):
                return True
            stacks = self.after(stacks, c)
        if missing == 0:
            return bool(stacks)
        return any(s and not self.is_token(s) and self.may_hold(s[-1], bits, missing) for s in stacks)

    def accept(self, token):
        if token in self.ends:
            return self.complete
        characters, *cut = decode(self.pieces[token], *self.cut)
        out = set()
        stacks = {s for s in self.stacks if s and not self.is_token(s)}
        for s in self.stacks - stacks:
            if s and self.wants(s, token):
                out |= self.opened(self.onto(s[:-1], s[-1] + 1))
        for c in characters:
            stacks = self.after(stacks, c)
        self.stacks, self.cut = out | stacks, tuple(cut)
        return bool(self.stacks)
