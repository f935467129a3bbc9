"""The memory of all slots' keys and values, counted in blocks, and which idle slots give theirs up for a new answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bankml.engine.slot import Slot
from bankml.errors import RequestError, UsageError

BLOCK = 256
"""Cells of a block: the keys and values of so many tokens are counted together."""

MIB = 1 << 20


def blocks_of(cells: int) -> int:
    return -(-cells // BLOCK)


class KVBudget:
    """`limit` bytes for the cells of all slots; None: no limit.

    An answer gets the cells of its prompt and of all tokens that it may have before it begins, so it never stops for
    memory that others took meanwhile. An idle slot counts for the tokens that it has, and gives its memory back when
    an answer needs it. Call its methods with the slots' lock held.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._reserved: dict[int, int] = {}  # bytes, by the number of a slot in use

    def require_room(self, slot: Slot, n_ctx: int) -> None:
        """Raises UsageError unless one answer that fills the context has room."""
        least = _bytes(slot, n_ctx)
        if self.limit is not None and self.limit < least:
            raise UsageError(
                f"--kv-limit {self.limit // MIB} is too small: one context of {n_ctx} tokens takes "
                f"{-(-least // MIB)} MiB of this model's keys and values"
            )

    def check(self, slots: Sequence[Slot], cells: int, answers: int) -> None:
        """Raises RequestError for `answers` of `cells` each that do not fit even when nothing else is there."""
        wanted = answers * _bytes(slots[0], cells)
        if self.limit is not None and wanted > self.limit:
            raise RequestError(
                f"{answers} answers of up to {cells} tokens take {-(-wanted // MIB)} MiB of keys and values, the limit "
                f"is {self.limit // MIB} MiB: request fewer, or a smaller max_tokens"
            )

    def used(self, slots: Iterable[Slot]) -> int:
        """Bytes that `slots` count for."""
        return sum(self._held(slot) for slot in slots)

    def reserve(
        self,
        chosen: Sequence[Slot],
        slots: Iterable[Slot],
        idle: Sequence[Slot],
        cells: int,
        drop: Callable[[Slot], None],
    ) -> bool:
        """Whether `chosen` can have `cells` each beside the other `slots`; they have them then. `drop` empties slots of
        `idle`, the first ones first, if that is what it takes."""
        wanted = {slot.number: _bytes(slot, cells) for slot in chosen}
        if self.limit is not None:
            others = [slot for slot in slots if slot.number not in wanted]
            room = self.limit - sum(wanted.values()) - self.used(others)
            giving = [slot for slot in idle if slot.number not in wanted and len(slot)]
            if room + sum(self._held(slot) for slot in giving) < 0:
                return False
            for slot in giving:
                if room >= 0:
                    break
                room += self._held(slot)
                drop(slot)
        self._reserved |= wanted
        return True

    def end(self, slots: Iterable[Slot]) -> None:
        """The answers in `slots` have ended: they count for the tokens that they have."""
        for slot in slots:
            self._reserved.pop(slot.number, None)

    def _held(self, slot: Slot) -> int:
        return self._reserved[slot.number] if slot.number in self._reserved else _bytes(slot, len(slot))


def _bytes(slot: Slot, cells: int) -> int:
    return blocks_of(cells) * BLOCK * slot.cells.cell_bytes
