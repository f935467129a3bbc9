"""Files that appear whole or not at all, also after a process was killed while it made one."""

import signal
import subprocess
import sys

import pytest

from bankml.errors import Refused
from bankml.files import atomic_write, problem, temporary_directory, unreadable

MAKING = """
import sys, time
from pathlib import Path
from bankml.files import atomic_write, temporary_directory
folder = Path(sys.argv[1])
with temporary_directory(folder, ".making-") as made, atomic_write(folder / "out.gguf") as out, open(made / "x", "w"):
    out.write(b"half")
    out.flush()
    print("making", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def killed(tmp_path):
    """A folder in which a process is making a file and a folder; and the function that kills it."""
    with subprocess.Popen([sys.executable, "-c", MAKING, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"making\n"

        def kill():
            child.send_signal(signal.SIGKILL)
            child.wait()

        yield tmp_path, kill
        kill()


def make_again(folder):
    with temporary_directory(folder, ".making-"), atomic_write(folder / "out.gguf") as out:
        out.write(b"whole")


def test_what_a_killed_process_left_is_removed_by_the_next_that_makes_the_same(killed):
    folder, kill = killed
    bystanders = {".out.gguf.notours.part", ".other.gguf.0123456789abcdef.part", ".making-too-long-a-name", "in.gguf"}
    for name in bystanders:
        (folder / name).write_bytes(b"")
    make_again(folder)
    assert len(list(folder.iterdir())) == len(bystanders) + 3  # ours is there; the other is still being made
    kill()
    make_again(folder)
    assert {path.name for path in folder.iterdir()} == {*bystanders, "out.gguf"}
    assert (folder / "out.gguf").read_bytes() == b"whole"


def test_nothing_is_left_of_a_block_that_fails(tmp_path):
    with (
        pytest.raises(KeyError),
        temporary_directory(tmp_path, ".making-") as made,
        atomic_write(tmp_path / "out") as out,
    ):
        out.write(b"half")
        (made / "x").mkdir()
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_many_make_the_same_at_once(tmp_path):
    code = f"""
import sys
from pathlib import Path
from bankml.files import atomic_write, temporary_directory
folder = Path({str(tmp_path)!r})
for _ in range(200):
    with temporary_directory(folder, ".making-") as made, atomic_write(folder / "out") as out:
        (made / "x").write_bytes(b"x")
        out.write(b"whole")
"""
    children = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [child.communicate(timeout=60)[1] for child in children]
    assert errors == [""] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_written_through_or_replaced(tmp_path, there):
    outside, link = tmp_path / "outside", tmp_path / "link"
    if there:
        outside.write_text("was")
    link.symlink_to(outside)
    with atomic_write(link) as out:
        out.write(b"through")
    assert link.is_symlink() and outside.read_text() == "through"
    if not there:
        outside.unlink()
    with atomic_write(link, follow=False) as out:
        out.write(b"replaced")
    assert not link.is_symlink() and link.read_text() == "replaced" and outside.exists() == there


@pytest.mark.parametrize(
    ("path", "told"),
    [("/a/b/m.gguf", "m.gguf"), ("m.gguf", "m.gguf"), ("/a/b/", "b"), ("/", "/"), ("../up", "up"), ("", "''")],
)
def test_clients_are_told_a_files_name(path, told):
    error = problem("read", path, OSError(13, "Permission denied"))
    assert error.message == f"cannot read {path or repr(path)}: permission denied"
    assert error.public_message == f"cannot read {told}: permission denied"
    assert unreadable("/a/x.json", "not JSON").public_message == "cannot read x.json: not JSON"
    assert Refused("x").public_message == "x"
