"""A parsed schema, one frozen record per kind. `read_schema` makes them, the converter turns them into rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Json = object
"""A value as a JSON reader gives it."""

Format = Literal["", "uuid", "date", "time", "date-time"]


@dataclass(frozen=True)
class Anything:
    pass


@dataclass(frozen=True)
class Ref:
    """A reference; the target is `SchemaDocument.targets[ref]`, so that schemas can refer to themselves."""

    ref: str


@dataclass(frozen=True)
class AnyOf:
    children: tuple[Node, ...]


@dataclass(frozen=True)
class AllOf:
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Const:
    value: Json


@dataclass(frozen=True)
class Enum:
    values: tuple[Json, ...]


@dataclass(frozen=True)
class Simple:
    type: Literal["null", "boolean", "number"]


@dataclass(frozen=True)
class Integer:
    """Both bounds are inclusive; None: no bound."""

    minimum: int | None
    maximum: int | None


@dataclass(frozen=True)
class String:
    pattern: str = ""
    format: Format = ""
    min_length: int = 0
    max_length: int | None = None


@dataclass(frozen=True)
class Array:
    items: Node
    min_items: int
    max_items: int | None


@dataclass(frozen=True)
class Tuple:
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Property:
    name: str
    schema: Node
    required: bool


@dataclass(frozen=True)
class Object:
    """`additional` None: no other properties are allowed."""

    properties: tuple[Property, ...]
    additional: Node | None


Node = Anything | Ref | AnyOf | AllOf | Const | Enum | Simple | Integer | String | Array | Tuple | Object


@dataclass(frozen=True)
class SchemaDocument:
    root: Node
    targets: Mapping[str, Node]
