"""The right edge of the tree: of each level of tiles the hashes that no full tile has yet."""

from collections.abc import Iterator

from bankml.transparency.tiles import WIDTH, ReadFile, TileName, hashes_in
from bankml.transparency.tree import EMPTY, full_root, node_hash


class RightEdge:
    """What appending needs to know of a log: at most 255 hashes a level, and up to 256 of leaves."""

    def __init__(self, size: int, levels: list[list[bytes]]) -> None:
        self.size = size
        self.levels = levels

    @classmethod
    def read(cls, size: int, read: ReadFile) -> "RightEdge":
        """The edge of a log of `size` entries, a multiple of 256, out of its full tiles. Raises OSError, ValueError."""
        levels: list[list[bytes]] = [[]]
        count = size // WIDTH  # full tiles of the level below
        while count:
            below = len(levels) - 1
            first = count - count % WIDTH
            tiles = (TileName(below, index) for index in range(first, count))
            levels.append([full_root(hashes_in(read(tile.path), WIDTH)) for tile in tiles])
            count //= WIDTH
        return cls(size, levels)

    def append(self, leaf: bytes) -> None:
        """Adds an entry's hash; the leaves' tile must not be full."""
        self.levels[0].append(leaf)
        self.size += 1

    @property
    def full(self) -> bool:
        """Whether the leaves' tile is full, and to be written."""
        return len(self.levels[0]) == WIDTH

    def completed(self) -> Iterator[tuple[TileName, bytes]]:
        """The tiles that are complete with the leaves' tile, and their content."""
        levels = [*map(list, self.levels)]
        for level in range(len(levels) + 1):
            if level == len(levels) or len(levels[level]) < WIDTH:
                return
            index = (self.size >> 8 * (level + 1)) - 1
            yield TileName(level, index), b"".join(levels[level])
            if level + 1 < len(levels):
                levels[level + 1].append(full_root(levels[level]))

    def carry(self) -> None:
        """Moves on to the next tiles, once those that are complete have been written."""
        level = 0
        while len(self.levels[level]) == WIDTH:
            if level + 1 == len(self.levels):
                self.levels.append([])
            self.levels[level + 1].append(full_root(self.levels[level]))
            self.levels[level] = []
            level += 1

    def partial(self) -> Iterator[tuple[TileName, bytes]]:
        """The partial tiles of a log whose leaves' tile is not full."""
        for level, hashes in enumerate(self.levels):
            if hashes:
                index = (self.size >> 8 * level) // WIDTH
                yield TileName(level, index, len(hashes)), b"".join(hashes)

    def root(self) -> bytes:
        """The root of the tree."""
        found: bytes | None = None
        for hashes in self.levels:
            end = len(hashes)
            while end:
                width = end & -end  # the smallest full subtree is the last
                subtree = full_root(hashes[end - width : end])
                found = subtree if found is None else node_hash(subtree, found)
                end -= width
        return EMPTY if found is None else found
