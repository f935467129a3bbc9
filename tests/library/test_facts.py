"""What is known of files: kept while they stay as they are, and no longer."""

import os

import pytest

from bankml.errors import PinMismatch
from bankml.gate.digest import sha256_file
from bankml.gate.fork import record_pin
from bankml.library.load import LoadOptions, open_library
from bankml.library.reference import PinnedFile
from bankml.library.registry import Registry
from tests.tiny_model import tiny_model


@pytest.fixture
def house(tmp_path):
    """A library of two models, `tiny` in memory and `other` in a folder beside it; and the file of the other."""
    for name in ("start", "other"):
        (tmp_path / name).mkdir()
    verified, other = tiny_model(tmp_path / "start"), tiny_model(tmp_path / "other", seed=2)
    file = tmp_path / "other" / "other.gguf"
    os.rename(other.path, file)
    os.unlink(other.fork_path)
    record_pin(tmp_path / "other" / "other.FORK.json", file.name, file.stat().st_size, other.sha256, replace=False)
    registry = Registry(str(tmp_path / "other"), PinnedFile.of(verified))
    return open_library(verified, LoadOptions(256, 1), registry), file


def test_a_file_that_is_not_the_pinned_one_is_hashed_once_and_drops_nobody_again(house):
    library, file = house
    wanted, good = library.resolve("other"), file.read_bytes()
    assert library.facts(wanted.source).reason is None
    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with library.turn(lambda: False):
        with pytest.raises(PinMismatch, match="pinned"):
            library.ready(wanted)
        resident = library.ready(library.resolve(None))
        with pytest.raises(PinMismatch, match="pinned"):
            library.ready(wanted)
        assert library.resident is resident
    assert "!= pinned" in library.facts(wanted.source).reason
    file.write_bytes(good)
    assert library.facts(wanted.source).reason is None
    with library.turn(lambda: False):
        assert library.ready(wanted).name == "other"


def test_a_record_that_is_written_for_the_file_is_believed(house):
    library, file = house
    before = library.resolve("other")
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with library.turn(lambda: False), pytest.raises(PinMismatch):
        library.ready(before)
    record_pin(file.parent / "other.FORK.json", file.name, file.stat().st_size, sha256_file(file), replace=True)
    now = library.resolve("other")
    assert library.facts(now.source).reason is None
    with library.turn(lambda: False):
        assert library.ready(now).name == "other"
