"""The tree and the entries as files (C2SP tlog-tiles): paths, content, and the hashes of nodes that are read from them.

tile/0/x001/234          256 hashes of leaves, from 1234 * 256
tile/1/000.p/7           7 hashes, each the root over a full tile of the level below
tile/entries/x001/234    the entries of tile/0/x001/234, each after its length (uint16, big-endian)
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bankml.transparency.tree import HASH, full_root

WIDTH = 256
"""Hashes of a full tile, entries of a full bundle."""

HEIGHT = 8
"""Levels of the tree in a tile."""

MOST_ENTRY = (1 << 16) - 1
"""Bytes of the longest entry."""

ENTRIES = "entries"
CHECKPOINT = "checkpoint"

_PATH = re.compile(r"tile/(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?", re.ASCII)

ReadFile = Callable[[str], bytes]
"""Gives the content of a path of the log. Raises OSError for one that is not there."""


@dataclass(frozen=True)
class TileName:
    """Tile `index` of a level (None: the entries), of `width` hashes or entries."""

    level: int | None
    index: int
    width: int = WIDTH

    @property
    def path(self) -> str:
        parts = [f"{self.index % 1000:03}"]
        rest = self.index // 1000
        while rest:
            parts.append(f"x{rest % 1000:03}")
            rest //= 1000
        kind = ENTRIES if self.level is None else self.level
        suffix = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{kind}/{'/'.join(reversed(parts))}{suffix}"

    @classmethod
    def of(cls, path: str) -> "TileName | None":
        """The tile that has this path; None where none has."""
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        level = None if found[1] == ENTRIES else int(found[1])
        index = int(found[2].replace("x", "").replace("/", ""))
        name = cls(level, index, int(found[3] or WIDTH))
        return name if name.path == path and (found[3] is None or name.width < WIDTH) else None


def hashes_in(data: bytes, width: int) -> list[bytes]:
    """The hashes of a tile. Raises ValueError for one of another width."""
    if len(data) != width * HASH:
        raise ValueError(f"{len(data)} bytes, and {width} hashes have {width * HASH}")
    return [data[at : at + HASH] for at in range(0, len(data), HASH)]


def bundle_of(entries: Iterable[bytes]) -> bytes:
    """A bundle of entries of at most MOST_ENTRY bytes."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def entries_in(data: bytes, width: int | None = None) -> list[bytes]:
    """The entries of a bundle, or its first `width`. Raises ValueError for one that is cut, or has fewer."""
    found: list[bytes] = []
    at = 0
    while at < len(data) and (width is None or len(found) < width):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if at + 2 > len(data) or end > len(data):
            raise ValueError("an entry is cut")
        found.append(data[at + 2 : end])
        at = end
    if width is not None and len(found) != width:
        raise ValueError(f"{len(found)} entries, not {width}")
    return found


def narrowed(data: bytes, name: TileName) -> bytes:
    """The partial tile `name` out of a wider one, of which it is the beginning. Raises ValueError."""
    if name.level is None:
        return bundle_of(entries_in(data, name.width))
    if len(data) < name.width * HASH:
        raise ValueError("the tile has fewer hashes")
    return data[: name.width * HASH]


def name_at(level: int | None, index: int, size: int) -> TileName:
    """The tile `index` of a level as a tree of `size` entries has it: full, or partial at the right edge."""
    width = (size >> HEIGHT * (level or 0)) - index * WIDTH
    return TileName(level, index, min(WIDTH, width))


class TileNodes:
    """The hashes of the nodes of a tree of `size` entries, out of tiles that `read` gives; each is read once."""

    def __init__(self, read: ReadFile, size: int) -> None:
        self._read = read
        self._size = size
        self._tiles: dict[TileName, list[bytes]] = {}

    def __call__(self, level: int, index: int) -> bytes:
        """Raises OSError, ValueError for a tile that is missing or malformed."""
        tile_level, above = divmod(level, HEIGHT)
        first = index << above  # of the tile's hashes, counted over the level
        hashes = self.tile(tile_level, first // WIDTH)
        at = first % WIDTH
        return full_root(hashes[at : at + (1 << above)])

    def tile(self, level: int, index: int) -> Sequence[bytes]:
        name = name_at(level, index, self._size)
        if name not in self._tiles:
            try:
                self._tiles[name] = hashes_in(self._read(name.path), name.width)
            except ValueError as error:
                raise ValueError(f"{name.path} is malformed: {error}") from None
        return self._tiles[name]
