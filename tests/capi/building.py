"""Compiles what the C API's tests run, with the system's compilers; skips the test where there is none."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOG = [ROOT / "native/capi/log.cpp", ROOT / "native/capi/log_format.cpp"]
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# The formats are the tests' own, and many are what a compiler warns of.
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-format", "-Wno-format-security", "-Wno-format-zero-length"]


def program(name: str) -> str:
    """The path of a program that may be absent; skips the test when it is."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name}")
    return path


def run(*command: str | Path, **options) -> subprocess.CompletedProcess[bytes]:
    """Runs a program to its end, which must be a good one."""
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False, timeout=300, **options)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    return done


def build(folder: Path, output: str, sources: list[Path], *options: str) -> Path:
    """Compiles and links C and C++ sources into folder/output; `options` are given to every step."""
    includes, objects = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'native'}"], []
    for source in sources:
        objects.append(folder / f"{output}-{source.stem}.o")
        compiler = [program("cc"), "-std=c11"] if source.suffix == ".c" else [program("c++"), "-std=c++20"]
        run(*compiler, *WARNINGS, *options, *includes, "-c", source, "-o", objects[-1])
    run(program("c++"), *options, *objects, "-o", folder / output, "-lpthread")
    return folder / output
