"""What a template does with the values it is given: by this llama.cpp tells what kinds of message it was written for."""

from bankml.text.jinja.values import Value


class Usage:
    """Values are told apart by identity, so a probe's strings must each be an object of their own (`ProbeText`)."""

    def __init__(self) -> None:
        self._used: set[int] = set()
        self._operations: dict[int, set[str]] = {}

    def use(self, value: Value, deep: bool = False) -> None:
        self._used.add(id(value))
        if deep and isinstance(value, list | tuple):
            for item in value:
                self.use(item, deep)
        elif deep and isinstance(value, dict):
            for key, item in value.items():
                self.use(key)
                self.use(item, deep)

    def operation(self, value: Value, name: str) -> None:
        self.use(value)
        self._operations.setdefault(id(value), set()).add(name)

    def used(self, value: Value) -> bool:
        return id(value) in self._used

    def had(self, value: Value, *names: str) -> bool:
        return not self._operations.get(id(value), set()).isdisjoint(names)


class ProbeText(bytes):
    """A string no operation can return unchanged: what is made of it is a new value."""


def probe(value: Value) -> Value:
    """`value` with every string its own object."""
    if isinstance(value, bytes):
        return ProbeText(value)
    if isinstance(value, list):
        return [probe(item) for item in value]
    if isinstance(value, dict):
        return {key: probe(item) for key, item in value.items()}
    return value
