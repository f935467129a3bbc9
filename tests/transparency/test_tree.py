"""The tree against its definition in RFC 9162, and against the roots that Certificate Transparency publishes."""

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.transparency.edge import RightEdge
from bankml.transparency.tree import (
    EMPTY,
    consistency_proof,
    full_root,
    inclusion_proof,
    inclusion_root,
    is_consistent,
    leaf_hash,
    root,
)


def mth(entries):
    """MTH of section 2.1.1, as it is written there."""
    if not entries:
        return sha256().digest()
    if len(entries) == 1:
        return sha256(b"\0" + entries[0]).digest()
    k = 1
    while k * 2 < len(entries):
        k *= 2
    return sha256(b"\1" + mth(entries[:k]) + mth(entries[k:])).digest()


def path(m, entries):
    """PATH of section 2.1.3.1."""
    if len(entries) == 1:
        return []
    k = 1
    while k * 2 < len(entries):
        k *= 2
    return [*path(m, entries[:k]), mth(entries[k:])] if m < k else [*path(m - k, entries[k:]), mth(entries[:k])]


def subproof(m, entries, known):
    """SUBPROOF of section 2.1.4.1."""
    if m == len(entries):
        return [] if known else [mth(entries)]
    k = 1
    while k * 2 < len(entries):
        k *= 2
    if m <= k:
        return [*subproof(m, entries[:k], known), mth(entries[k:])]
    return [*subproof(m - k, entries[k:], False), mth(entries[:k])]


def nodes(entries):
    leaves = list(map(leaf_hash, entries))
    return lambda level, index: full_root(leaves[index << level : (index + 1) << level])


CT = [
    b"",
    b"\x00",
    b"\x10",
    b"\x20\x21",
    b"\x30\x31",
    bytes(range(0x40, 0x44)),
    bytes(range(0x50, 0x58)),
    bytes(range(0x60, 0x70)),
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def test_the_published_roots():
    for size, expected in enumerate(ROOTS, 1):
        assert root(nodes(CT), size).hex() == expected
    assert root(nodes(CT), 0) == EMPTY == sha256().digest()


ENTRIES = [b"%d" % n for n in range(70)]


@pytest.mark.parametrize("size", range(1, 34))
def test_every_proof_of_a_small_tree_is_the_definitions(size):
    entries, node = ENTRIES[:size], nodes(ENTRIES)
    assert root(node, size) == mth(entries)
    for index in range(size):
        proof = inclusion_proof(node, index, size)
        assert proof == path(index, entries)
        assert inclusion_root(leaf_hash(entries[index]), index, size, proof) == mth(entries)
    for old in range(1, size + 1):
        proof = consistency_proof(node, old, size)
        assert proof == subproof(old, entries, True)
        assert is_consistent(old, size, mth(entries[:old]), mth(entries), proof)


def test_an_empty_log_is_the_beginning_of_every_other():
    assert is_consistent(0, 5, EMPTY, mth(ENTRIES[:5]), [])
    assert not is_consistent(0, 5, mth(ENTRIES[:1]), mth(ENTRIES[:5]), [])


@settings(max_examples=60)
@given(st.integers(1, 70), st.data())
def test_an_altered_proof_proves_nothing(size, data):
    node, top = nodes(ENTRIES), mth(ENTRIES[:size])
    index = data.draw(st.integers(0, size - 1))
    leaf, proof = leaf_hash(ENTRIES[index]), inclusion_proof(node, index, size)
    for other in range(size):
        assert (inclusion_root(leaf, other, size, proof) == top) == (other == index)
    assert inclusion_root(leaf, size, size, proof) is None and inclusion_root(leaf, -1, size, proof) is None
    for at in range(len(proof)):
        assert inclusion_root(leaf, index, size, proof[:at] + proof[at + 1 :]) != top
        flipped = bytes([proof[at][0] ^ 1]) + proof[at][1:]
        assert inclusion_root(leaf, index, size, [*proof[:at], flipped, *proof[at + 1 :]]) != top
    assert inclusion_root(leaf, index, size, [*proof, leaf]) != top
    assert inclusion_root(leaf_hash(b"else"), index, size, proof) != top


@settings(max_examples=60)
@given(st.integers(2, 70), st.data())
def test_a_rewritten_log_is_not_consistent(size, data):
    old = data.draw(st.integers(1, size - 1))
    changed = data.draw(st.integers(0, old - 1))
    rewritten = [*ENTRIES[:changed], b"rewritten", *ENTRIES[changed + 1 :]]
    old_root, proof = mth(ENTRIES[:old]), consistency_proof(nodes(rewritten), old, size)
    assert not is_consistent(old, size, old_root, mth(rewritten[:size]), proof)
    good = consistency_proof(nodes(ENTRIES), old, size)
    top = mth(ENTRIES[:size])
    assert is_consistent(old, size, old_root, top, good)
    for at in range(len(good)):
        assert not is_consistent(old, size, old_root, top, good[:at] + good[at + 1 :])
        flipped = bytes([good[at][0] ^ 1]) + good[at][1:]
        assert not is_consistent(old, size, old_root, top, [*good[:at], flipped, *good[at + 1 :]])
    assert not is_consistent(old, size, old_root, top, [*good, good[0] if good else top])
    assert not is_consistent(size, old, top, old_root, good)


@given(st.integers(0, 255))
def test_the_root_of_the_right_edge(size):
    edge = RightEdge(0, [[]])
    for number in range(size):
        edge.append(leaf_hash(b"%d" % number))
    assert edge.root() == mth([b"%d" % number for number in range(size)])
