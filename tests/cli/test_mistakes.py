"""What a newcomer gets wrong: each mistake is one clear sentence, about what was typed."""

import contextlib
import io
import os
import pty
import subprocess
import sys

import pytest

from bankml.cli import main
from bankml.library.registry import Registry
from tests.library.folders import pin, templated


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def run(*words, stdin=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        return (main(list(map(str, words))), *capfd.readouterr())

    return run


@pytest.mark.parametrize("words", [("usage", "--fast"), ("version", "--fast"), ("guard", "a", "--fast"), ("--fast",)])
def test_an_unknown_option_is_told_with_the_commands_own_help(run, words):
    code, out, err = run(*words)
    prog = f"bankml {words[0]}" if len(words) > 1 else "bankml"
    assert (code, out) == (1, "") and err.endswith(f" (see {prog} --help)\n")


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "m", "--native", "--ctx", "x"),
        ("serve", "m", "--native", "--ctx", "1_024"),
        ("generate", "m", "--max", "٣"),
        ("generate", "m", "--sample", "--top-k", "1.5"),
    ],
)
def test_what_is_no_number_is_said_in_words(run, words):
    code, _, err = run(*words)
    assert code == 1 and f"argument {words[-2]}: invalid whole number value: {words[-1]!r} (" in err


def test_a_word_that_would_fill_the_screen_is_told_by_its_ends(run):
    for words in (("guard", "a" * 5000 + "z"), ("a" * 5000 + "z",), ("usage", "9" * 5000)):
        code, _, err = run(*words)
        assert code == 1 and "…" in err and len(err) < 600


def test_a_folder_is_no_model(run, tmp_path):
    (tmp_path / "folder").mkdir()
    for words in (("generate", "folder"), ("serve", "folder", "--native"), ("guard", "folder"), ("sha256", "folder")):
        assert run(*words, stdin=b"Hi") == (1, "", "error: cannot read folder: not a regular file\n")


def test_an_answer_that_is_no_text_is_told_so(run, tmp_path):
    (tmp_path / "answer").write_bytes(b"{\xff}")
    code, _, err = run("check", "-", "answer")
    assert (code, err) == (2, "refuse: the answer cannot be read: it is not UTF-8 (byte 1)\n")


def test_no_messages_are_told_so(run, tmp_path):
    templated(tmp_path / "m.gguf")
    code, _, err = run("chat-template", "m.gguf", stdin=b"\n")
    assert (code, err) == (1, "error: stdin is empty: expected a list of messages or a chat request\n")


def test_a_modelfile_may_come_from_stdin(run, tmp_path):
    templated(tmp_path / "base.gguf")
    pin(tmp_path, "base.gguf")
    assert run("create", "mario", "-f", "-", "--registry", tmp_path, stdin=b"FROM ./base.gguf\nSYSTEM Mario\n")[0] == 0
    assert Registry(str(tmp_path)).resolve("mario").layer.system == "Mario"


def test_one_ctrl_d_ends_a_text_that_is_typed(tmp_path):
    templated(tmp_path / "m.gguf")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "bankml", "tokenize", str(tmp_path / "m.gguf")])
    shown = b""
    with contextlib.suppress(OSError):  # the other end of a terminal that is closed
        while part := os.read(terminal, 1024):
            shown += part
            if b"Ctrl-D ends the text" in shown and part.endswith(b"\n") and b"Hi" not in shown:
                os.write(terminal, b"Hi\n\x04")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert shown.splitlines()[-1].startswith(b"[")


def test_a_text_that_comes_slowly_is_read_to_its_end(tmp_path):
    templated(tmp_path / "m.gguf")
    words = [sys.executable, "-m", "bankml", "tokenize", str(tmp_path / "m.gguf")]
    reads, writes = os.pipe()
    os.set_blocking(reads, False)  # as some programs leave the pipes that they give to others
    with subprocess.Popen(words, stdin=reads, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.close(reads)
        os.write(writes, b"one")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        with contextlib.suppress(BrokenPipeError):
            os.write(writes, b" two")
        os.close(writes)
        out, err = process.communicate()
    one = subprocess.run(words, input=b"one two", capture_output=True, check=True)
    assert (out, err) == (one.stdout, b"")


def test_where_a_model_was_looked_for_is_told(run, tmp_path):
    code, _, err = run("create", "mario", "-f", "-", "--registry", tmp_path, stdin=b"FROM nix\n")
    assert code == 1 and err.endswith(f"(the registry is {tmp_path})\n")


def test_a_demo_that_has_no_folder_fetches_nothing(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    assert run("demo", "--no-serve", "--dir", "file") == (1, "", "error: file is not a folder\n")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (tmp_path / "locked").mkdir()
    assert run("demo", "--no-serve", "--dir", "locked") == (1, "", "error: cannot write locked: permission denied\n")
