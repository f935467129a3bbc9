"""How a template uses its values: from this llama.cpp infers which kinds of message it supports."""

from bankml.text.jinja.values import Value


class ValueUsage:
    """Values are compared by identity, so a probe's strings must each be an object of their own (`ProbeText`)."""

    def __init__(self) -> None:
        self._used: set[int] = set()
        self._operations: dict[int, set[str]] = {}

    def use(self, value: Value) -> None:
        self._used.add(id(value))

    def use_all(self, value: Value) -> None:
        """`value` and everything in it; a value that occurs several times is visited once."""
        seen, pending = set[int](), [value]
        while pending:
            item = pending.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, list | tuple):
                pending.extend(item)
            elif isinstance(item, dict):
                pending.extend(item.values())
        self._used |= seen

    def operation(self, value: Value, name: str) -> None:
        self.use(value)
        self._operations.setdefault(id(value), set()).add(name)

    def used(self, value: Value) -> bool:
        return id(value) in self._used

    def had(self, value: Value, *names: str) -> bool:
        return not self._operations.get(id(value), set()).isdisjoint(names)


class ProbeText(bytes):
    """A string that no operation can return unchanged: results are always new values."""


def probe(value: Value) -> Value:
    """`value` with every string its own object."""
    if isinstance(value, bytes):
        return ProbeText(value)
    if isinstance(value, list):
        return [probe(item) for item in value]
    if isinstance(value, dict):
        return {key: probe(item) for key, item in value.items()}
    return value
