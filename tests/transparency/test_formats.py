"""Paths of tiles, notes, checkpoints and proofs: the examples of the C2SP specifications, and what is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.signing import ed25519
from bankml.signing.keys import SigningKey
from bankml.transparency.note import LogCheckpoint, base64, from_base64, signed, verifier_key, verify
from bankml.transparency.proof import InclusionProof
from bankml.transparency.tiles import TileName, bundle_of, entries_in, name_at


class Example:
    """A verifier key as a specification gives it."""

    def __init__(self, text):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self.name, number, key = text.split("+", 2)
        self.raw = from_base64(key)[1:]
        self.key = Ed25519PublicKey.from_public_bytes(self.raw)
        assert verifier_key(self.name, self) == text and len(number) == 8

    def verifies(self, signature, data):
        return ed25519.verifies(self.key, signature, data)


PETER = Example("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
PETERS = (
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)


def test_a_note_of_another_implementation():
    """The example of Go's package golang.org/x/mod/sumdb/note."""
    verify(PETERS, "PeterNeumann", PETER)
    with pytest.raises(ValueError, match="altered"):
        verify(PETERS.replace("the answer", "an answer"), "PeterNeumann", PETER)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (TileName(0, 0), "tile/0/000"),
        (TileName(1, 1234067), "tile/1/x001/x234/067"),
        (TileName(0, 999, 7), "tile/0/999.p/7"),
        (TileName(None, 1000), "tile/entries/x001/000"),
        (TileName(63, 5, 255), "tile/63/005.p/255"),
    ],
)
def test_the_paths_of_the_specification(name, path):
    assert name.path == path and TileName.of(path) == name


@given(st.integers(0, 63), st.integers(0, 10**12), st.integers(1, 256))
def test_a_path_names_one_tile(level, index, width):
    name = TileName(level, index, width)
    assert TileName.of(name.path) == name


@pytest.mark.parametrize(
    "path",
    [
        "", "checkpoint", "tile/0/0", "tile/0/0000", "tile/00/000", "tile/0/000.p/0", "tile/0/000.p/256",
        "tile/0/000.p/07", "tile/0/x000/001", "tile/-1/000", "tile/0/../000", "tile/entries/x001/0", "/tile/0/000",
        "tile/0/000/", "tile/0/000\n", "tile/0/٠٠٠", "tile/0/1000", "tile/100/000",
    ],
)  # fmt: skip
def test_what_is_no_path_of_a_tile(path):
    assert TileName.of(path) is None


def test_the_tiles_of_seventy_thousand_entries():
    """The specification's example."""
    assert name_at(0, 272, 70000) == TileName(0, 272, 256) and name_at(0, 273, 70000) == TileName(0, 273, 112)
    assert name_at(1, 0, 70000) == TileName(1, 0, 256) and name_at(1, 1, 70000) == TileName(1, 1, 17)
    assert name_at(2, 0, 70000) == TileName(2, 0, 1)


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_a_bundle_has_its_entries(entries):
    data = bundle_of(entries)
    assert entries_in(data) == entries and entries_in(data, len(entries)) == entries
    for cut in range(1, min(len(data), 40)):
        found = data[:-cut]
        with suppress(ValueError):
            assert entries_in(found) == entries[: len(entries_in(found))]
        with pytest.raises(ValueError):
            entries_in(found, len(entries))


# ---- checkpoints

ROOT = bytes(range(32))
CHECKPOINT = LogCheckpoint("example.com/log", 12, ROOT)


@pytest.fixture(scope="module")
def key():
    return SigningKey(ed25519.new_key())


def test_a_checkpoint_is_signed_and_read(key):
    note = signed(CHECKPOINT.text, "example.com/log", key)
    assert note.startswith(f"example.com/log\n12\n{base64(ROOT)}\n\n— example.com/log ")
    verify(note, "example.com/log", key.public)
    assert LogCheckpoint.of(note) == CHECKPOINT
    verify(note + "— witness.example/w " + base64(b"1234" + b"x" * 72) + "\n", "example.com/log", key.public)
    assert LogCheckpoint.of(signed(CHECKPOINT.text, "example.com/log", None)) == CHECKPOINT


def test_every_changed_byte_of_a_checkpoint_is_found(key):
    note = signed(CHECKPOINT.text, "example.com/log", key).encode()
    for at in range(len(note)):
        for bit in (1, 2, 4, 8, 16, 32, 64, 128):
            altered = note[:at] + bytes([note[at] ^ bit]) + note[at + 1 :]
            with pytest.raises(ValueError):
                text = altered.decode()
                assert LogCheckpoint.of(text).origin == CHECKPOINT.origin or not verify(
                    text, "example.com/log", key.public
                )
                verify(text, "example.com/log", key.public)
    for cut in range(len(note)):
        with pytest.raises(ValueError):
            verify(note[:cut].decode("utf-8", "replace"), "example.com/log", key.public)


@pytest.mark.parametrize(
    ("note", "says"),
    [
        ("a\n1\n" + base64(ROOT) + "\n\n", "it is not signed"),
        (signed("a\n", "b", SigningKey(ed25519.new_key())), "it is not signed by the key given"),
        ("a\n1\n", "a blank line is missing"),
        ("a\n\n— b\n", "malformed"),
        ("a\n\n— b c", "malformed"),
        ("a\n\nb c d\n", "malformed"),
        ("a\n\n— b !!!!\n", "not base64"),
    ],
)
def test_a_signature_that_is_missing_or_malformed_is_named(key, note, says):
    with pytest.raises(ValueError, match=says):
        verify(note, "b", key.public)


@pytest.mark.parametrize(
    "text", ["", "a\n1\n\n", "a\n01\nx\n\n", "a\n-1\nx\n\n", "a\n1\nAAAA\n\n", "\n1\nx\n\n", "a\n1\nx\ny\n\n"]
)
def test_what_is_no_checkpoint(text):
    with pytest.raises(ValueError):
        LogCheckpoint.of(text)


# ---- proofs


def test_a_proof_is_written_and_read(key):
    note = signed(CHECKPOINT.text, "example.com/log", key)
    proof = InclusionProof(7, (b"a" * 32, b"b" * 32), note)
    assert InclusionProof.of(proof.text) == proof
    assert proof.text.startswith(f"c2sp.org/tlog-proof@v1\nindex 7\n{base64(b'a' * 32)}\n")
    extra = proof.text.replace("index", "extra YWdl\nindex")
    assert InclusionProof.of(extra) == proof


HEAD = "c2sp.org/tlog-proof@v1\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c2sp.org/tlog-proof@v2\nindex 0\n\nx",
        f"{HEAD}\nx",
        f"{HEAD}index 01\n\nx",
        f"{HEAD}index 0\nAAAA\n\nx",
        f"{HEAD}index 0",
    ],
)
def test_what_is_no_proof(text):
    with pytest.raises(ValueError):
        InclusionProof.of(text)
