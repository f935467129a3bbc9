"""What the C API's tests share: models made small, and the programs of `programs/`, compiled as a user would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end import tiny
from tests.tiny_model import tiny_model

from .building import program, run

BANKML = Path(sys.executable).parent / "bankml"
PROGRAMS = Path(__file__).parent / "programs"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "BANKML_THREADS": "1", "BANKML_CACHE_RAM": "16"}
"""What a program of the tests finds: nothing of the virtual environment, which is not activated."""


def options(*asked: str) -> list[str]:
    return run(BANKML, "capi", *asked).stdout.decode().split()


def start(path: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a compiled program to its end, wherever it ends, from a folder that is not its own."""
    return subprocess.run(
        [path, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd="/",
        env={**ENVIRONMENT, **environment},
    )


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Makes a program of `programs/`, once; more options for the compiler may be given."""
    folder, made = tmp_path_factory.mktemp("programs"), {}

    def compile_(name: str, *more: str, libs: tuple[str, ...] = ("--libs",)) -> Path:
        key = (name, more, libs)
        if key not in made:
            output = folder / f"{len(made)}-{name}"
            given = [*options("--cflags"), PROGRAMS / f"{name}.c", *more, *options(*libs)]
            run(program("cc"), "-std=gnu11", "-O1", *WARNINGS, *given, "-lpthread", "-lm", "-o", output)
            made[key] = output
        return made[key]

    return compile_


@pytest.fixture(scope="session")
def bytes_model(tmp_path_factory):
    """A Llama whose tokens are bytes, verified: its answers hold characters that no token has whole."""
    return tiny_model(tmp_path_factory.mktemp("bytes"), n_layer=1)


@pytest.fixture(scope="session")
def words_model(tmp_path_factory):
    """Path and record of a Qwen3 in Q1_0."""
    kind = next(one for one in tiny.MODELS if one.name == "tiny-qwen3-q1_0")
    path = tmp_path_factory.mktemp("words") / f"{kind.name}.gguf"
    tiny.write(path, kind)
    run(BANKML, "pin", path, "--fork", f"{path}.FORK.json", "--record", env=dict(os.environ))
    return path, Path(f"{path}.FORK.json")
