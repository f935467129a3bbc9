"""Commands whose standard streams are closed, full, or read by nobody: in processes of their own."""

import os
import subprocess
import sys

import pytest

from bankml.cli import main
from tests.end_to_end.servers import ask, free_port, waiting
from tests.tiny_model import tiny_model

BANKML = [sys.executable, "-m", "bankml"]


def command(redirections, *words):
    return ["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", *BANKML, *map(str, words)]


def run(redirections, *words):
    done = subprocess.run(
        command(redirections, *words), stdin=subprocess.PIPE, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model")).path


@pytest.mark.parametrize(
    ("redirections", "words", "says"),
    [
        (">&-", ("version",), "cannot write stdout: bad file descriptor"),
        (">/dev/full", ("version",), "cannot write stdout: no space left on device"),
        (">&-", ("--help",), "cannot write stdout: bad file descriptor"),
        (">/dev/full", ("guard", "--help"), "cannot write stdout: no space left on device"),
        (">&-", ("--version",), "cannot write stdout: bad file descriptor"),
        (">&-", ("sha256", "MODEL"), "cannot write stdout: bad file descriptor"),
        ("<&-", ("tokenize", "MODEL"), "cannot read stdin: bad file descriptor"),
        ("<&-", ("check", "-", "MODEL"), "cannot read stdin: bad file descriptor"),
        (">&- <&-", ("chat-template", "MODEL"), "cannot read stdin: bad file descriptor"),
    ],
)
def test_what_cannot_be_read_or_written_is_one_sentence(model, redirections, words, says):
    words = [model if word == "MODEL" else word for word in words]
    assert run(redirections, *words) == (1, "", f"error: {says}\n")


@pytest.mark.parametrize("redirections", ["2>&-", "2>/dev/full"])
def test_without_stderr_the_exit_code_says_it(model, redirections):
    assert run(redirections, "nonsense") == (1, "", "")
    assert run(redirections, "guard", __file__)[0] == 2
    code, out, _ = run(f"{redirections} <&-", "sha256", model)
    assert code == 0 and len(out.split()[0]) == 64


@pytest.mark.parametrize("redirections", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_serving_needs_no_stream(model, redirections):
    listen, engine = free_port(), free_port()
    addresses = [f"--listen=127.0.0.1:{listen}", f"--upstream=127.0.0.1:{engine}"]
    words = command(redirections, "serve", model, "--native", "--ctx=256", "--threads=1", *addresses)
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            waiting(listen, process)
            body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
            for _ in range(2):
                assert ask(listen, "/v1/chat/completions", body)[0] == 200
            held = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
            assert not any(name.startswith("socket:") or name.endswith(".gguf") for name in held), held
        finally:
            process.terminate()
        errors = process.stderr.read().decode()
        assert process.wait() == 0, errors
    assert "Traceback" not in errors and "Exception" not in errors and "error:" not in errors


@pytest.mark.parametrize("error", [MemoryError(), SystemError("error return without exception set")])
def test_an_error_without_memory_for_its_line(error, monkeypatch, capfd):
    def fail(*_words):
        raise error

    monkeypatch.setattr("bankml.cli._run", fail)
    assert main(["version"]) == 1
    assert capfd.readouterr().err == "error: out of memory\n"
    monkeypatch.setattr("bankml.cli.output.one_line", fail)
    assert main(["version"]) == 1
    assert capfd.readouterr().err == "error: out of memory\n"
