"""The Merkle tree of RFC 9162, section 2.1: its hashes, its proofs, and how they are verified.

`MTH(D[a:b])` of the RFC is the hash over the entries from a to b. A node (level, index) is that of a full subtree:
the entries from index * 2**level to (index + 1) * 2**level.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256

HASH = 32
"""Bytes of a hash."""

EMPTY = sha256(b"").digest()
"""The root of a tree without entries."""

Node = Callable[[int, int], bytes]
"""Gives the hash of the node (level, index)."""


def leaf_hash(entry: bytes) -> bytes:
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def full_root(hashes: Sequence[bytes]) -> bytes:
    """The root over `hashes`, which are those of equal full subtrees; their number is a power of two."""
    level = list(hashes)
    while len(level) > 1:
        level = [node_hash(level[at], level[at + 1]) for at in range(0, len(level), 2)]
    return level[0]


def range_hash(node: Node, begin: int, end: int) -> bytes:
    """MTH(D[begin:end]), where `begin` is a multiple of the size of the largest full subtree in it."""
    size = end - begin
    if size & (size - 1) == 0:
        return node(size.bit_length() - 1, begin // size)
    middle = begin + _split(size)
    return node_hash(range_hash(node, begin, middle), range_hash(node, middle, end))


def root(node: Node, size: int) -> bytes:
    """The root of the tree over the first `size` entries."""
    return EMPTY if size == 0 else range_hash(node, 0, size)


def inclusion_proof(node: Node, index: int, size: int) -> list[bytes]:
    """PATH(index, D[0:size]): the siblings from the leaf's to the root's child. `index` is below `size`."""
    path: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            path.append(range_hash(node, middle, end))
            end = middle
        else:
            path.append(range_hash(node, begin, middle))
            begin = middle
    return path[::-1]


def consistency_proof(node: Node, old: int, size: int) -> list[bytes]:
    """PROOF(old, D[0:size]): that the first `old` entries of the tree are all of an earlier one. 0 < old <= size."""
    path: list[bytes] = []
    begin, end, known = 0, size, True
    while old != end:
        middle = begin + _split(end - begin)
        if old <= middle:
            path.append(range_hash(node, middle, end))
            end = middle
        else:
            path.append(range_hash(node, begin, middle))
            begin, known = middle, False
    if not known:
        path.append(range_hash(node, begin, end))
    return path[::-1]


def _split(size: int) -> int:
    """The largest power of two below `size`, which is above 1."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_root(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root that `proof` leads to from a leaf's hash (RFC 9162, 2.1.3.2); None for a proof of another length."""
    if not 0 <= index < size:
        return None
    at, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return None
        if at & 1 or at == last:
            found = node_hash(sibling, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return found if last == 0 else None


def is_consistent(old: int, size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the tree of `size` entries begins with that of `old` (RFC 9162, 2.1.4.2)."""
    if old == size:
        return not proof and old_root == new_root
    if old == 0:
        return not proof and old_root == EMPTY
    if not 0 < old < size or not proof:
        return False
    path = list(proof) if old & (old - 1) else [old_root, *proof]
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = node_hash(second, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root
