"""What a forward pass computes: consecutive tokens of one sequence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """`tokens`, computed into `cells`, the K/V cells of their sequence, from `position` on."""

    tokens: Sequence[int]
    position: int
    cells: Any
