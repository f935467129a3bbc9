"""Limits of a schema and its grammar: a schema that expands too far is refused before it costs time or memory.

b11192 has none of these limits: it continues until it is done, out of memory or out of stack.
"""

from bankml.grammar.json_schema.problems import SchemaError

MAX_LEVELS = 128
"""Nested schemas, including followed references."""

MAX_STEPS = 100_000
"""Schemas parsed or converted, properties gathered, names tried, values of constants, characters of patterns: each
costs a few microseconds at most."""

MAX_TEXT = 8 << 20
"""Characters of rules and of constants, and of paths in the schema and names of rules, each time one is made."""


class SchemaBudget:
    """The remaining budget of one schema. Raises SchemaError when it is exhausted."""

    def __init__(self) -> None:
        self._steps = MAX_STEPS
        self._text = MAX_TEXT

    def step(self, count: int = 1) -> None:
        self._steps -= count
        if self._steps < 0:
            raise SchemaError(f"the schema is too large: converting it takes more than {MAX_STEPS} steps")

    def text(self, size: int) -> None:
        self._text -= size
        if self._text < 0:
            raise SchemaError(f"the schema is too large: its grammar has more than {MAX_TEXT} characters")

    @staticmethod
    def level(depth: int) -> None:
        if depth > MAX_LEVELS:
            raise SchemaError(f"the schema is nested deeper than {MAX_LEVELS} levels")
