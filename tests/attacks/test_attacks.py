"""Every hostile file ends in one line and an exit code, within a second of processor time and 200 MB."""

import json
import os
import resource
import subprocess
import sys
from hashlib import sha256

import pytest

from bankml.cli import main
from tests.attacks.build import ARCH, ATTACKS, BOOL, STRING, U8, array, gguf, string, tensor

BOUND_BYTES = 200_000_000
BOUND_SECONDS = 1


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (BOUND_BYTES, BOUND_BYTES))
    # The kernel ends the process at the second limit; a busy machine may not count against us, so it is processor time.
    resource.setrlimit(resource.RLIMIT_CPU, (BOUND_SECONDS, BOUND_SECONDS))


def guard(path):
    command = [sys.executable, "-m", "bankml", "guard", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, preexec_fn=bounded, check=False)
    lines = (ran.stdout + ran.stderr).splitlines()
    assert len(lines) == 1, ran
    assert "Traceback" not in lines[0] and lines[0].isprintable()
    assert (ran.stdout == "") == (ran.returncode != 0)
    assert lines[0].split(": ")[0] == {0: "play", 1: "error", 2: "refuse", 3: "need_more"}[ran.returncode]
    return ran.returncode, lines[0]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_guard(attack, tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(attack.build())
    code, line = guard(path)
    assert code == attack.code
    assert attack.says in line


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_nothing_else_takes_it(attack, tmp_path, capfd):
    path = tmp_path / "x.gguf"
    raw = attack.build()
    path.write_bytes(raw)
    fork = tmp_path / "FORK.json"
    fork.write_text(json.dumps({"files": [{"path": path.name, "bytes": len(raw), "sha256": sha256(raw).hexdigest()}]}))
    out = tmp_path / "out.gguf"
    for command in (
        ["verify", str(path), "--fork", str(fork)],
        ["verify", str(path), "--fork", str(fork), "--json"],
        ["convert", str(path), "-o", str(out), "--outtype", "f16"],
        ["tokenize", str(path)],
        ["chat-template", str(path)],
        ["serve", str(path), "--fork", str(fork), "--native"],
    ):
        assert main(command) in (2, 3), command
        printed = capfd.readouterr()
        lines = (printed.out + printed.err).splitlines()
        assert len(lines) == 1 and lines[0].isprintable() and "x.gguf" in lines[0], command
        assert not out.exists() and len(list(tmp_path.iterdir())) == 2


def sparse(path, head, size):
    path.write_bytes(head)
    os.truncate(path, size)
    return path


def test_a_size_that_bears_the_numbers_out_still_allocates_little(tmp_path):
    """Sparse files: every length lies inside the file, and is still more than a header may ask for."""
    size = 1 << 34
    long_string = gguf((string("k", "")[:-8] + (1 << 33).to_bytes(8, "little"),))
    assert guard(sparse(tmp_path / "1", long_string, size))[0] == 2
    assert guard(sparse(tmp_path / "2", gguf((array("k", U8, 1 << 33, b""),)), size))[0] == 2
    assert guard(sparse(tmp_path / "3", gguf((array("k", STRING, 1 << 30, b""),)), size))[0] == 2
    emoji = "\U0001f600".encode()  # one of them, and each character of the text takes four bytes
    much_text = gguf((string("k", emoji)[:-12] + (40 << 20).to_bytes(8, "little") + emoji,))
    assert guard(sparse(tmp_path / "7", much_text, size))[0] == 2
    keys = gguf([string(emoji + b"k" * 60_000 + str(number).encode(), "") for number in range(900)])
    (tmp_path / "8").write_bytes(keys)
    assert guard(tmp_path / "8")[0] == 2
    heads = gguf((ARCH, array("llama.attention.head_count", U8, 50_000_000, b"")), n_keys=2)
    assert guard(sparse(tmp_path / "9", heads, size))[0] == 2
    # As much as is read: 2^21 strings of nothing, then a key of zero bytes.
    assert guard(sparse(tmp_path / "4", gguf((array("k", STRING, 1 << 21, b""), b"")), size))[0] == 2
    assert guard(sparse(tmp_path / "5", gguf((array("k", U8, 60_000_000, b""), b"")), size))[0] == 2
    assert guard(sparse(tmp_path / "6", gguf((array("k", BOOL, 60_000_000, b""), b"")), size))[0] == 2


def test_as_many_entries_as_are_read(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf([string(f"k{number}", "v") for number in range(65_536)]))
    assert guard(path)[0] == 0
    path.write_bytes(
        gguf(tensors=[tensor(f"t{number}", (8,), 0, 32 * number) for number in range(20_000)], data=640_000)
    )
    assert guard(path)[0] == 0


def test_a_header_cut_anywhere_needs_more(tmp_path):
    whole = gguf((ARCH, array("k", STRING, 2, b"\1" + bytes(7) + b"a" + bytes(8))), (tensor("t", (8,), 0, 0),))
    path = tmp_path / "x.gguf"
    from bankml.gate.guard import guard as judge

    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        verdict = judge(path)
        assert verdict.kind == "need_more", length
        assert length < verdict.needs <= len(whole)


def test_what_is_not_a_regular_file(tmp_path):
    fifo, loop, folder = tmp_path / "fifo", tmp_path / "loop", tmp_path / "folder"
    os.mkfifo(fifo)
    loop.symlink_to(loop)
    folder.mkdir()
    for path, says in (
        (fifo, "not a regular file"),
        (folder, "not a regular file"),
        (loop, "symbolic links"),
        ("/dev/zero", "not a regular"),
        (tmp_path / "none", "no such file"),
        (tmp_path / ("n" * 300), "too long"),
    ):
        code, line = guard(path)
        assert code == 1 and says in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_permission_denied(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf())
    path.chmod(0)
    code, line = guard(path)
    assert code == 1 and "permission denied" in line
