"""Families of templates whose answers have a parser of their own in b11192, in the order in which it asks."""

from collections.abc import Callable
from dataclasses import dataclass

from bankml.answers.format import AnswerFormat
from bankml.answers.request import FormatRequest


@dataclass(frozen=True)
class Family:
    """Templates with all of `has` and none of `lacks` in their source."""

    name: str
    has: tuple[str, ...]
    describe: Callable[[FormatRequest], AnswerFormat]
    lacks: tuple[str, ...] = ()

    def is_of(self, source: str) -> bool:
        return all(text in source for text in self.has) and not any(text in source for text in self.lacks)


FAMILIES: tuple[Family, ...] = ()


def family_of(source: str) -> Family | None:
    return next((family for family in FAMILIES if family.is_of(source)), None)
