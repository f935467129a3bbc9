"""What opening, answering and closing leave behind: nothing that grows, and nothing that memcheck objects to."""

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ENVIRONMENT, start

SUPPRESSIONS = Path(__file__).parent / "memcheck.supp"
GROWTH = 3 << 10
"""Bytes a round: CPython's cache of attribute look-ups holds on to names until its 4096 places are full. A model that
stayed would be a hundred times as much."""


def test_fifty_rounds_leave_nothing_that_grows(compiled, bytes_model):
    done = start(compiled("rounds"), bytes_model.path, bytes_model.fork_path, 10, 50, PYTHONMALLOC="malloc")
    assert done.returncode == 0, done.stdout + done.stderr
    ten, fifty = map(int, done.stdout.split())
    if ten == 0:
        pytest.skip("this C library does not count what it gives away")
    assert bytes_model.identity.size > 20 * GROWTH
    assert fifty - ten < 40 * GROWTH


def test_memcheck_finds_nothing(compiled, bytes_model):
    """benchmarks/capi.py does the same for fifty rounds."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("no valgrind")
    how = [f"--suppressions={SUPPRESSIONS}", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    how += ["--show-leak-kinds=definite", "--error-exitcode=99"]
    done = subprocess.run(
        [valgrind, *how, compiled("rounds"), bytes_model.path, bytes_model.fork_path, "2"],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "PYTHONMALLOC": "malloc"},
    )
    assert done.returncode == 0, done.stderr
    assert "ERROR SUMMARY: 0 errors" in done.stderr
