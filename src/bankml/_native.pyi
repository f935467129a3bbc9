"""Types of the compiled module, room by room."""

from collections.abc import Sequence
from typing import Any

def __getattr__(name: str) -> Any: ...  # the rooms that are not described below

# ---- text

class Tokenizer:
    def __init__(
        self, tokens: Sequence[str | bytes], cuts: bytes, merges: Sequence[str | bytes], pretokenizer: str
    ) -> None: ...
    def encode(self, text: bytes, parse_special: bool) -> list[int]: ...

def first_in_hash_order(tokens: Sequence[str | bytes], names: Sequence[str | bytes]) -> int: ...
