"""Reads one field of a JSON file of a model's folder; errors name file and field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bankml.errors import Refused
from bankml.gguf.values import shown

INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class JsonConfig:
    """The JSON object of the file `name`. A null is the same as a missing field."""

    name: str
    values: Mapping[str, Any]

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def refuse(self, key: str, why: str) -> Refused:
        return Refused(f"{self.name}: {key} {why}")

    def count(self, key: str, default: int | None = None, most: int = INT32_MAX) -> int:
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self.refuse(key, f"is {glimpse(value)}, not a whole number from 1 to {most}")
        return value

    def number(self, key: str) -> float:
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
            raise self.refuse(key, f"is {glimpse(value)}, not a positive number")
        return float(value)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.refuse(key, f"is {glimpse(value)}, not a string")
        return value

    def object(self, key: str) -> "JsonConfig":
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.refuse(key, f"is {glimpse(value)}, not an object")
        return JsonConfig(self.name, value)

    def only(self, key: str, *harmless: Any) -> None:
        """Refuses any value of `key` except null and `harmless` ones, which have no effect."""
        value = self.values.get(key)
        if value is not None and not any(type(value) is type(one) and value == one for one in harmless):
            raise self.refuse(key, f"is {glimpse(value)}, which is unsupported")


def glimpse(value: Any) -> str:
    """A JSON value shortened for an error message."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, bool | int | float):
        return str(value).lower()[:40]
    return "a list" if isinstance(value, list) else "an object"
