"""The examples in C, C++, Go and Python, built as their first lines say and run against a real model."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_model import tiny_model

from .building import ROOT, program, run

EXAMPLES = ROOT / "examples"
BIN = Path(sys.executable).parent
# No environment is activated: only ctypes needs a path to `bankml`, which it asks where the library is.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "BANKML_THREADS": "1"}


def capi(option: str) -> list[str]:
    done = subprocess.run([BIN / "bankml", "capi", option], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"bankml capi {option}: {done.stderr.strip()}")
    return done.stdout.split()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model"), n_layer=1)


def c(folder):
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run(program("cc"), *strict, EXAMPLES / "chat.c", *capi("--cflags"), *capi("--libs"), "-o", folder / "chat")
    return [folder / "chat"], ENVIRONMENT


def cpp(folder):
    options = [*capi("--cflags"), *capi("--libs")]
    run(
        program("c++"),
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        EXAMPLES / "chat.cpp",
        *options,
        "-o",
        folder / "chat",
    )
    return [folder / "chat"], ENVIRONMENT


def go(folder):
    flags = {"CGO_CFLAGS": " ".join(capi("--cflags")), "CGO_LDFLAGS": " ".join(capi("--libs"))}
    environment = {**ENVIRONMENT, **flags, "CGO_ENABLED": "1", "GO111MODULE": "auto", "GOFLAGS": "-mod=mod"}
    environment["GOCACHE"] = os.environ.get("GOCACHE", str(folder / "cache"))
    run(program("go"), "vet", EXAMPLES / "chat.go", env=environment)
    run(program("go"), "build", "-o", folder / "chat", EXAMPLES / "chat.go", env=environment)
    return [folder / "chat"], ENVIRONMENT


def ctypes(_):
    capi("--prefix")
    return [sys.executable, EXAMPLES / "chat_ctypes.py"], {**ENVIRONMENT, "PATH": f"{BIN}:{ENVIRONMENT['PATH']}"}


@pytest.fixture(scope="module", params=[c, cpp, go, ctypes], ids=["C", "C++", "Go", "ctypes"])
def ask(request, tmp_path_factory):
    command, environment = request.param(tmp_path_factory.mktemp("example"))

    def asked(*arguments):
        words = [str(word) for word in (*command, *arguments)]
        return subprocess.run(words, capture_output=True, check=False, env=environment, timeout=300)

    return asked


def test_the_answer_is_the_one_the_receipt_vouches_for(ask, model):
    done = ask(model.path, model.fork_path, 'What is "\\a\n\x01"? ü')
    assert done.returncode == 0, done.stderr
    hashes = dict(line.split() for line in done.stderr.decode().splitlines() if "_sha256 " in line)
    assert hashes["model_sha256"] == model.sha256
    assert done.stdout.endswith(b"\n")
    assert hashes["response_sha256"] == hashlib.sha256(done.stdout[:-1]).hexdigest()
    assert len(hashes["request_sha256"]) == 64


def test_a_file_that_is_not_the_recorded_one_is_refused(ask, model, tmp_path):
    record = Path(model.fork_path).read_text()
    assert model.sha256 in record
    fork = tmp_path / "FORK.json"
    fork.write_text(record.replace(model.sha256, "0" * 64))
    done = ask(model.path, fork, "Hello?")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"\nrefuse: tiny.gguf" in b"\n" + done.stderr


def test_a_question_that_does_not_fit_is_refused(ask, model):
    done = ask(model.path, model.fork_path, "long " * 2000)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"bankml_chat returned -2: " in done.stderr
    assert b"context size" in done.stderr


def test_three_words_are_needed(ask):
    done = ask("one")
    assert (done.returncode, done.stdout) == (2 if b"chat_ctypes" not in done.stderr else 1, b"")
    assert done.stderr.startswith(b"usage: ")
