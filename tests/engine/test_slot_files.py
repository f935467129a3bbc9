import fcntl
import io
import os
import struct
import threading
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.engine import slot_file
from bankml.engine.engine import Engine
from bankml.engine.slot_actions import erase, restore, save
from bankml.engine.slot_file import Origin, SlotContent
from bankml.engine.slot_folder import SECRET, UNFINISHED, SlotFolder, is_slot_name
from bankml.errors import FileProblem, RequestError, UsageError
from tests.engine.cell_toys import CellModel, Cells, filled
from tests.engine.engine_toys import ByteVocabulary

SHA, KEY = "ab" * 32, b"k" * 32
TOKENS = list(b"What is said here")


def engine_with(tokens, **model):
    engine = Engine(CellModel(**model), ByteVocabulary())
    slot = engine.slots[0]
    slot.extend(filled(tokens, slot.cells).tokens)
    return engine


def with_slot(tokens, **model):
    """An engine and its slot."""
    engine = engine_with(tokens, **model)
    return engine, engine.slots[0]


@pytest.fixture
def folder(tmp_path):
    return SlotFolder(str(tmp_path))


def refused(engine, folder, name="a", sha=SHA):
    """Why the file was refused; the slot is empty then, or as it was where there is no file to read."""
    engine.slots[0].extend([1, 2])
    before = engine.slots[0].tokens
    with pytest.raises(RequestError) as caught:
        restore(engine, engine.slots[0], sha, folder, name)
    assert engine.slots[0].tokens in ((), before) and caught.value.status == 400
    assert caught.value.message.startswith("Unable to restore slot: ")
    return caught.value.message.removeprefix("Unable to restore slot: ")


# ---- names: llama.cpp's fs_validate_filename


@pytest.mark.parametrize(
    "name", ["a", "a.bin", ".a", "naïve.bin", "a b", "x" * 255, "é" * 127, "-rf", "~", "a.b.c", "语"]
)
def test_names_that_pass(name):
    assert is_slot_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "a..b", "../x", "a/b", "a\\b", "/", " a", "a ", "a.",
        "a:b", "a*b", "a?b", 'a"b', "a<b", "a>b", "a|b",
        "a\0b", "a\nb", "a\x1f", "a\x7f", "a\x80", "a\x9f",
        "a\ufffd", "\ufeffa", "a\uff0eb", "a\u2215b", "a\u2216b", "\ud800",
        "x" * 256, "é" * 128,
    ],
)  # fmt: skip
def test_names_that_do_not(name):
    assert not is_slot_name(name)


# ---- round


@given(st.lists(st.integers(0, 255), max_size=40), st.integers(1, 3))
def test_what_is_saved_comes_back(tokens, width):
    engine = engine_with(tokens, n_ctx=64, width=width)
    cells = engine.slots[0].cells
    origin, file = Origin.of(cells, 64, SHA), io.BytesIO()
    content = SlotContent(tokens, engine.slots[0].trace.spans)
    assert slot_file.write(file, origin, content, cells, KEY) == len(file.getvalue())
    assert len(file.getvalue()) == origin.file_bytes(len(tokens), len(content.trace))
    other = Cells(n_ctx=64, width=width)
    with open(os.memfd_create("slot"), "w+b") as source:
        source.write(file.getvalue())
        source.seek(0)
        restored = slot_file.read(source, Origin.of(other, 64, SHA), other, 256, KEY)
    assert restored.content == content
    assert other.held(len(tokens)) == tuple(tokens)


def test_save_erase_restore(folder, tmp_path):
    engine = engine_with(TOKENS)
    saved = save(engine, engine.slots[0], SHA, folder, "a")
    assert saved.n_tokens == len(TOKENS) and saved.nbytes == (tmp_path / "a").stat().st_size
    assert erase(engine.slots[0]) == len(TOKENS) and erase(engine.slots[0]) == 0
    engine.slots[0].cells.k[:] = engine.slots[0].cells.v[:] = -1
    assert restore(engine, engine.slots[0], SHA, folder, "a") == saved
    assert engine.slots[0].tokens == tuple(TOKENS) == engine.slots[0].cells.held(len(TOKENS))
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_another_context_that_is_long_enough(folder):
    save(*with_slot(TOKENS, n_ctx=256), SHA, folder, "a")
    assert restore(*with_slot([], n_ctx=len(TOKENS)), SHA, folder, "a").n_tokens == len(TOKENS)
    short = engine_with([], n_ctx=len(TOKENS) - 1)
    assert refused(short, folder) == "its 17 tokens (of a context of 256) do not fit the context of 16"


def test_an_empty_slot(folder):
    save(*with_slot([]), SHA, folder, "a")
    assert restore(*with_slot(TOKENS), SHA, folder, "a").n_tokens == 0


# ---- refused


def test_every_damaged_byte_is_found(folder, tmp_path):
    engine = engine_with(TOKENS[:3], n_ctx=16)
    save(engine, engine.slots[0], SHA, folder, "a")
    good = (tmp_path / "a").read_bytes()
    for at in range(len(good)):
        for bit in (0, 7):
            (tmp_path / "a").write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])
            if 40 <= at < 44:  # the context is only told, but it too is under the sha256
                assert "damaged" in refused(engine, folder)
            else:
                refused(engine, folder)


def test_every_shorter_file_and_a_longer_one(folder, tmp_path):
    engine = engine_with(TOKENS[:3], n_ctx=16)
    save(engine, engine.slots[0], SHA, folder, "a")
    good = (tmp_path / "a").read_bytes()
    for size in range(len(good)):
        (tmp_path / "a").write_bytes(good[:size])
        refused(engine, folder)
    (tmp_path / "a").write_bytes(good + b"\0")
    assert "bytes, but 3 tokens take" in refused(engine, folder)


def test_another_model_type_or_shape(folder):
    save(*with_slot(TOKENS), SHA, folder, "a")
    other = engine_with([])
    assert refused(other, folder, sha="cd" * 32) == f"the file is of another model, with the sha256 {SHA}"
    other.slots[0].cells.cache_type = "q8_0"
    assert refused(other, folder) == "the file's KV cache is f16, this server's is q8_0"
    assert refused(engine_with([], width=2), folder) == "the file's KV cache has another shape than the model's"


def test_tokens_that_the_model_does_not_have(folder):
    engine = engine_with([300, -5])
    save(engine, engine.slots[0], SHA, folder, "a")
    assert refused(engine, folder) == "the file has tokens that the model does not have"


def test_a_count_of_tokens_that_is_no_count(folder, tmp_path):
    save(*with_slot([]), SHA, folder, "a")
    raw = bytearray((tmp_path / "a").read_bytes())
    raw[slot_file.HEAD.size - 8 : slot_file.HEAD.size - 4] = struct.pack("<I", 2**32 - 1)
    (tmp_path / "a").write_bytes(raw)
    assert "4294967295 tokens" in refused(engine_with([]), folder)


def test_nothing_and_no_slot_file_are_told_as_llama_server_tells_it(folder, tmp_path):
    (tmp_path / "a").write_bytes(b"GGUF" + bytes(500))
    for name in ("a", "missing"):
        assert refused(engine_with([]), folder, name) == "No available space in KV cache or invalid slot save file"


@pytest.mark.parametrize("kind", ["link", "broken link", "pipe", "folder"])
def test_what_is_no_plain_file_is_neither_read_nor_replaced(folder, tmp_path, kind):
    outside = tmp_path.parent / "outside"
    save(*with_slot(TOKENS), SHA, folder, "b")
    before = (tmp_path / "b").read_bytes()
    (tmp_path / "b").rename(outside)
    make = {
        "link": lambda: (tmp_path / "a").symlink_to(outside),
        "broken link": lambda: (tmp_path / "a").symlink_to(tmp_path / "new"),
        "pipe": lambda: os.mkfifo(tmp_path / "a"),
        "folder": (tmp_path / "a").mkdir,
    }
    make[kind]()
    what = "a is a symbolic link" if "link" in kind else "a is not a regular file"
    assert refused(engine_with([]), folder) == what
    with pytest.raises(RequestError, match=f"^Unable to save slot: {what}$"):
        save(*with_slot([1]), SHA, folder, "a")
    assert outside.read_bytes() == before and sorted(os.listdir(tmp_path)) == [SECRET, "a"]


# ---- saving that fails


class Breaks(Cells):
    def view(self, n):
        if n:
            raise OSError(28, "No space left on device")
        return super().view(n)


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(folder, tmp_path):
    save(*with_slot(TOKENS), SHA, folder, "a")
    before = (tmp_path / "a").read_bytes()
    engine, slot = with_slot(TOKENS)
    slot.cells.view = Breaks().view
    with pytest.raises(FileProblem) as caught:
        save(engine, slot, SHA, folder, "a")
    assert caught.value.message == "Unable to save slot: cannot write a: no space left on device"
    assert caught.value.status == 500
    assert (tmp_path / "a").read_bytes() == before and sorted(os.listdir(tmp_path)) == [SECRET, "a"]


def test_a_folder_that_is_gone(folder, tmp_path):
    tmp_path.rmdir()
    with pytest.raises(FileProblem, match="Unable to save slot: cannot open the folder of slot files"):
        save(*with_slot(TOKENS), SHA, folder, "a")
    assert "no such file" in refused(engine_with([]), folder)
    with pytest.raises(UsageError):
        SlotFolder(str(tmp_path))


def test_what_was_left_unfinished_goes_unless_it_is_being_written(folder, tmp_path):
    rest = tmp_path / f"{UNFINISHED}1"
    rest.write_bytes(b"half")
    writing, finish = threading.Event(), threading.Event()

    def write():
        with folder.replacing("a") as out:
            out.write(b"whole")
            writing.set()
            assert finish.wait(5)

    thread = threading.Thread(target=write)
    thread.start()
    assert writing.wait(5)
    SlotFolder(str(tmp_path))
    assert len(os.listdir(tmp_path)) == 1 and not rest.exists()
    finish.set()
    thread.join(5)
    assert (tmp_path / "a").read_bytes() == b"whole"
    with open(tmp_path / "a", "rb") as file:  # and nobody holds it any more
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


# ---- the secret


def forged(path):
    """Other keys and values, and the sha256 of the new content."""
    raw = bytearray(path.read_bytes())
    a_span = 12
    raw[slot_file.HEAD.size + 4 * len(TOKENS) + a_span + 3] ^= 1
    content = raw[: -slot_file.TAIL_BYTES]
    return bytes(content + sha256(content).digest() + raw[-32:])


def test_a_forged_file_is_refused_unless_it_is_trusted(folder, tmp_path):
    engine = engine_with(TOKENS)
    save(engine, engine.slots[0], SHA, folder, "a")
    (tmp_path / "a").write_bytes(forged(tmp_path / "a"))
    assert refused(engine, folder) == (
        "the file was changed, or written by another server: --slots-trust accepts such files"
    )
    assert restore(engine, engine.slots[0], SHA, SlotFolder(str(tmp_path), trust=True), "a").n_tokens == len(TOKENS)
    assert engine.restored == [sha256((tmp_path / "a").read_bytes()[: -slot_file.TAIL_BYTES]).hexdigest()]


def test_a_file_of_another_server_is_refused(folder, tmp_path):
    (tmp_path / "other").mkdir()
    save(*with_slot(TOKENS), SHA, SlotFolder(str(tmp_path / "other")), "a")
    (tmp_path / "a").write_bytes((tmp_path / "other" / "a").read_bytes())
    assert "written by another server" in refused(engine_with(TOKENS), folder)


def test_the_secret_is_the_owners_alone(folder, tmp_path):
    save(*with_slot(TOKENS), SHA, folder, "a")
    secret = tmp_path / SECRET
    assert secret.stat().st_mode & 0o777 == 0o600 and secret.stat().st_size == 32 and not is_slot_name(SECRET)
    before = secret.read_bytes()
    assert restore(*with_slot([]), SHA, SlotFolder(str(tmp_path)), "a").n_tokens == len(TOKENS)
    assert secret.read_bytes() == before
    secret.chmod(0o640)
    assert "only its owner can read" in refused(engine_with(TOKENS), folder)
    secret.chmod(0o600)
    secret.write_bytes(b"short")
    with pytest.raises(FileProblem, match="must be a file of 32 bytes"):
        save(*with_slot(TOKENS), SHA, folder, "b")
    secret.unlink()
    secret.symlink_to(tmp_path / "a")
    assert "secret" in refused(engine_with(TOKENS), folder)


def test_servers_that_begin_at_once_have_one_secret(tmp_path):
    found, barrier = [], threading.Barrier(8)

    def begin():
        barrier.wait()
        found.append(SlotFolder(str(tmp_path)).writing_key())

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and [path.name for path in tmp_path.iterdir()] == [SECRET]


def test_a_missing_file_leaves_the_slot_as_it_is(folder):
    engine = engine_with(TOKENS)
    with pytest.raises(RequestError, match="Unable to restore slot"):
        restore(engine, engine.slots[0], SHA, folder, "none")
    assert engine.slots[0].tokens == tuple(TOKENS)
