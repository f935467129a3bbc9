"""The reader of a header's metadata: one architecture's keys, with the types and ranges the forward pass needs."""

from collections.abc import Mapping, Sequence
from typing import Any

from bankml.gguf.values import shown_value
from bankml.model.shape import unsupported


class MetadataKeys:
    """The metadata of one architecture. Every method raises UnsupportedModel, naming the key."""

    def __init__(self, metadata: Mapping[str, Any], architecture: str) -> None:
        self._metadata = metadata
        self._prefix = architecture + "."

    def present(self, key: str) -> bool:
        return self._prefix + key in self._metadata

    def text(self, key: str, default: str) -> Any:
        """The value of `key`, of whatever type it is; `default` where it is missing."""
        return self._metadata.get(self._prefix + key, default)

    def count(self, key: str, default: int | None = None, least: int = 1, most: int = 1 << 24) -> int:
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise unsupported(f"{self._prefix}{key} is missing")
        if isinstance(value, bool) or not isinstance(value, int):
            raise unsupported(f"{self._prefix}{key} is not one whole number")
        if not least <= value <= most:
            raise unsupported(f"{self._prefix}{key} is {value}, outside {least} to {most}")
        return value

    def number(self, key: str, default: float | None = None, least: float = 0.0) -> float:
        """A positive number of at least `least`; a `default` of 0 stands for none."""
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise unsupported(f"{self._prefix}{key} is missing")
        if value == 0 and default == 0:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
            raise unsupported(f"{self._prefix}{key} is not a positive number")
        if value < least:
            raise unsupported(f"{self._prefix}{key} is {value}, below {least:g}")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self._metadata.get(self._prefix + key, default)
        if not isinstance(value, bool):
            raise unsupported(f"{self._prefix}{key} is not true or false")
        return value

    def strings(self, key: str) -> int | None:
        """How many strings the array `key` has; None: it is missing."""
        value = self._metadata.get(self._prefix + key)
        if value is not None and (isinstance(value, str | bytes) or not isinstance(value, Sequence) or not len(value)):
            raise unsupported(f"{self._prefix}{key} is not an array of strings")
        return None if value is None else len(value)

    def require_default(self, key: str, *defaults: object) -> None:
        """Refuses a key that the forward pass does not implement, unless its value changes nothing."""
        value = self._metadata.get(self._prefix + key)
        if value is not None and value not in defaults:
            raise unsupported(f"{self._prefix}{key} is {shown_value(value)}")

    def window_layers(self, every: int, n_layer: int) -> tuple[bool, ...]:
        """Which layers have a sliding window: those that `attention.sliding_window_pattern` flags, or all but each
        `every`-th one, where the key may be another number."""
        pattern = self._metadata.get(self._prefix + "attention.sliding_window_pattern")
        if isinstance(pattern, Sequence) and not isinstance(pattern, str | bytes):
            if len(pattern) < n_layer or any(one not in (0, 1) for one in pattern):
                raise unsupported(f"{self._prefix}attention.sliding_window_pattern is not one flag for each layer")
            return tuple(bool(one) for one in pattern[:n_layer])
        every = self.count("attention.sliding_window_pattern", every, least=0)
        return tuple(every == 0 or i % every < every - 1 for i in range(n_layer))
